"""Hears of imports: calls functions right before and right after the program imports one of some modules.

Every Python process of a watched program has this, and most never import such a module: nothing heavy may be imported here.
"""

import _thread
import sys


class ImportWatch:
    def __init__(self, names, after, before=None, failed=None):
        self._waiting = set(names)
        self._after, self._before = after, before
        self._failed = failed  # told of an import that raised, and of a module that is not there (None)
        self._busy = set()
        sys.meta_path.insert(0, self)

    def stop(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        here = (name, _thread.get_ident())
        if here in self._busy:  # another finder asks for the same module on its way
            return None
        self._busy.add(here)
        try:
            if self._before is not None:
                self._before(name)
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = None if finder is self or find is None else find(name, path, target)
                if spec is not None:
                    return self._watched(name, spec)
        finally:
            self._busy.discard(here)
        if self._failed is not None:
            self._failed(name, None)
        return None

    def _watched(self, name, spec):
        loader = spec.loader
        load = getattr(loader, "exec_module", None)
        if load is None or isinstance(loader, type):
            return spec

        def exec_module(module):
            try:
                load(module)
            except BaseException as problem:
                if self._failed is not None:
                    self._failed(name, problem)
                raise
            vars(loader).pop("exec_module", None)
            self._imported(name, module)

        # It runs as a part of the import system and is named so: warnings and tracebacks leave those frames out.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader that takes no attribute: this module is not watched
        return spec

    def _imported(self, name, module):
        if name not in self._waiting:
            return
        self._waiting.discard(name)
        if not self._waiting:
            self.stop()
        self._after(name, module)
