# leak
import torch
class Server:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda().eval()
        self.sessions = {}
    @torch.inference_mode()
    def answer(self, user, prompt):
        state = self.model(prompt)  # <- kept
        self.sessions[user] = state
        return state.argmax(-1).tolist()
server = Server()
for user in range(50):
    server.answer(user, torch.randn(128, 512, device="cuda"))
