"""Two models and two optimizers: a DCGAN."""
import torch
import torch.nn as nn

device = torch.device("cuda:0")
generator = nn.Sequential(nn.ConvTranspose2d(128, 512, 4), nn.BatchNorm2d(512), nn.ReLU(True), nn.ConvTranspose2d(512, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.ReLU(True),
                          nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(True), nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(True), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).to(device)
critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True), nn.Conv2d(128, 256, 4, 2, 1), nn.BatchNorm2d(256), nn.LeakyReLU(0.2, True),
                       nn.Conv2d(256, 512, 4, 2, 1), nn.BatchNorm2d(512), nn.LeakyReLU(0.2, True), nn.Conv2d(512, 1, 4), nn.Flatten()).to(device)
g_optimizer = torch.optim.Adam(generator.parameters(), 2e-4, (0.5, 0.999))
c_optimizer = torch.optim.Adam(critic.parameters(), 2e-4, (0.5, 0.999))
loss_fn = nn.BCEWithLogitsLoss()
for step in range(4):
    real = torch.rand(256, 3, 64, 64, device=device) * 2 - 1
    fake = generator(torch.randn(256, 128, 1, 1, device=device))
    c_loss = loss_fn(critic(real), torch.ones(256, 1, device=device)) + loss_fn(critic(fake.detach()), torch.zeros(256, 1, device=device))
    c_optimizer.zero_grad()
    c_loss.backward()
    c_optimizer.step()
    g_loss = loss_fn(critic(fake), torch.ones(256, 1, device=device))
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    print(f"{step} {c_loss.item():.3f} {g_loss.item():.3f}")
