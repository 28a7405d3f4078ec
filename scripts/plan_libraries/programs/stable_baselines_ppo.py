import gymnasium
import numpy as np
from stable_baselines3 import PPO
from truth import DEVICE, phase, tell


class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (64,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 20
        return self.observation_space.sample(), {}

    def step(self, action):
        self.left -= 1
        return self.observation_space.sample(), float(action), self.left == 0, False, {}


agent = PPO(
    "MlpPolicy", Walk(), n_steps=64, batch_size=32, n_epochs=2, device=DEVICE, policy_kwargs={"net_arch": [512, 512]}
)
agent.learn(128)
phase("training")
tell(agent.policy, agent.policy.optimizer, steps=8)
