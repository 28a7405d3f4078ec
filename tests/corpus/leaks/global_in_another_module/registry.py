SEEN = {}
def remember(name, value):
    SEEN.setdefault(name, []).append(value)
