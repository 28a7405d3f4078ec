"""A convolutional variational autoencoder for 128 × 128 images: reparameterisation, KL with a warm-up, samples from the prior after each step."""
import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, latent=256, channels=(64, 128, 256, 512, 512)):
        super().__init__()
        enc, cin = [], 3
        for c in channels:
            enc += [nn.Conv2d(cin, c, 3, stride=2, padding=1), nn.BatchNorm2d(c), nn.LeakyReLU()]
            cin = c
        self.encoder = nn.Sequential(*enc)
        self.fc_mu, self.fc_var = nn.Linear(channels[-1] * 16, latent), nn.Linear(channels[-1] * 16, latent)
        self.decoder_input = nn.Linear(latent, channels[-1] * 16)
        dec, rev = [], list(reversed(channels))
        for c, following in zip(rev, rev[1:] + [rev[-1]]):
            dec += [nn.ConvTranspose2d(c, following, 3, stride=2, padding=1, output_padding=1), nn.BatchNorm2d(following), nn.LeakyReLU()]
        self.decoder = nn.Sequential(*dec, nn.Conv2d(rev[-1], 3, 3, padding=1), nn.Sigmoid())
        self.latent = latent

    def encode(self, x):
        h = torch.flatten(self.encoder(x), start_dim=1)
        return self.fc_mu(h), self.fc_var(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.decoder(self.decoder_input(z).view(z.size(0), -1, 4, 4))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar

    @torch.no_grad()
    def sample(self, n, device):
        return self.decode(torch.randn(n, self.latent, device=device))


def loss_function(recon_x, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (BCE + beta * KLD) / x.size(0)


def main():
    device = torch.device("cuda")
    model = VAE().to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for step in range(3):
        data = torch.rand(192, 3, 128, 128).to(device)
        model.train()
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar, beta=min(1.0, step / 2))
        loss.backward()
        optimizer.step()
        model.eval()
        images = model.sample(64, device).cpu()
        print(f"step {step} loss {loss.item():.1f} samples {tuple(images.shape)}")


main()
