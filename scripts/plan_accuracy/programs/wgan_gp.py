"""A Wasserstein GAN with gradient penalty: the critic's gradient with respect to its input is itself differentiated (create_graph=True)."""
import torch
import torch.nn as nn
import torch.autograd as autograd

LAMBDA, N_CRITIC, BATCH, LATENT, IMG = 10, 2, 64, 128, 64
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def up(cin, cout):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


def down(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride=2, padding=1), nn.InstanceNorm2d(cout, affine=True), nn.LeakyReLU(0.2))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(LATENT, 512 * 4 * 4)
        self.net = nn.Sequential(up(512, 512), up(512, 256), up(256, 128), up(128, 128), nn.Conv2d(128, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        return self.net(self.project(z).view(-1, 512, 4, 4))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), nn.LeakyReLU(0.2), down(128, 256), down(256, 512), down(512, 512), down(512, 512))
        self.out = nn.Linear(512 * 4 * 4, 1)

    def forward(self, x):
        return self.out(self.net(x).flatten(1))


def calc_gradient_penalty(netD, real_data, fake_data):
    alpha = torch.rand(real_data.size(0), 1, 1, 1, device=device).expand_as(real_data)
    interpolates = (alpha * real_data + (1 - alpha) * fake_data).requires_grad_(True)
    scores = netD(interpolates)
    gradients = autograd.grad(outputs=scores, inputs=interpolates, grad_outputs=torch.ones_like(scores),
                              create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((gradients.reshape(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


netG, netD = Generator().to(device), Critic().to(device)
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-4, betas=(0.0, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-4, betas=(0.0, 0.9))
for iteration in range(3):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(N_CRITIC):
        real = torch.rand(BATCH, 3, IMG, IMG).mul(2).sub(1).to(device)
        with torch.no_grad():
            fake = netG(torch.randn(BATCH, LATENT, device=device))
        netD.zero_grad()
        D_cost = netD(fake).mean() - netD(real).mean() + calc_gradient_penalty(netD, real, fake)
        D_cost.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G_cost = -netD(netG(torch.randn(BATCH, LATENT, device=device))).mean()
    G_cost.backward()
    optimizerG.step()
    print(f"iteration {iteration} D {D_cost.item():.3f} G {G_cost.item():.3f}")
