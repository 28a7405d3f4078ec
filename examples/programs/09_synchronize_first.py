"""Like 07, with synchronize() before cpu(). The call changes nothing: cpu() waits by itself."""
import torch

a = torch.randn(2048, 2048, device="cuda")
b = a.clone()
a.add_(1.0)
c = b @ b
torch.cuda.synchronize()
print(c.cpu().shape)
