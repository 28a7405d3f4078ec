#include "pack/scrubber.h"

#include <gtest/gtest.h>

namespace faultline::pack {
namespace {

using namespace std::string_literals;

Owner anna() { return {{"/home/anna"}, {"anna"}, {"deepbox.acme.lan"}, {"/home/anna/acme/proj"}, {}}; }

std::string scrubbed(std::string_view text) { return Scrubber(anna()).scrub(text); }

// Put together here, so that nobody takes this file for a leak.
const std::string kBody = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5";

TEST(Scrubber, TakesOutEverySecretThatItKnows) {
  const std::string forty = "0123456789abcdef0123456789abcdef01234567";
  const std::string aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  for (const std::string& secret :
       {"hf_" + kBody, "ghp_" + kBody, "github_pat_" + kBody + "_" + kBody, "sk-" + kBody, "sk-proj-" + kBody,
        "AKIA" + std::string("IOSFODNN7EXAMPLE"), "glpat-" + kBody, "xoxb-1234567890-" + kBody, "AIza" + kBody, forty,
        aws, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + kBody, "nvapi-" + kBody, "npm_" + kBody}) {
    for (const std::string& text : {secret, "login " + secret + " failed", "x=\"" + secret + "\"", "(" + secret + ")",
                                    "url?key=" + secret + "&b=1", "a\n" + secret + "\nb", "'" + secret + "'"}) {
      const std::string clean = scrubbed(text);
      EXPECT_EQ(clean.find(secret), std::string::npos) << clean;
      EXPECT_EQ(clean.find(secret.substr(8, 12)), std::string::npos) << clean;
      EXPECT_NE(clean.find("<token-1>"), std::string::npos) << clean;
    }
  }
}

TEST(Scrubber, TakesOutWhatASecretsNameIsGiven) {
  for (const char* text : {"--password=hunter2",
                           "--password hunter2",
                           "password: hunter2",
                           "PASSWORD='hunter2'",
                           "\"password\": \"hunter2\"",
                           "DB_PASSWORD=hunter2",
                           "--hf-token hunter2",
                           "--token hunter2",
                           "WANDB_API_KEY=hunter2",
                           "api_key=hunter2,",
                           "api-key: hunter2",
                           "aws_secret_access_key = hunter2",
                           "HF_TOKEN=hunter2 python x.py",
                           "Authorization: Basic hunter2",
                           "https://anna:hunter2@acme.io/x.git",
                           "postgres://u:hunter2@db/x",
                           "client_secret=hunter2&x=1",
                           "MY_PAT=hunter2",
                           "--wandb-api-key=hunter2",
                           "curl -H 'Authorization: token hunter2'"}) {
    EXPECT_EQ(scrubbed(text).find("hunter2"), std::string::npos) << text << " → " << scrubbed(text);
  }
  EXPECT_EQ(scrubbed("Bearer " + kBody), "Bearer <token-1>");
  const std::string key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----";
  EXPECT_EQ(scrubbed("a " + key + " b"), "a <private-key-1> b");
  EXPECT_EQ(scrubbed("-----BEGIN OPENSSH PRIVATE KEY-----\nMIIE\nabc").find("MIIE"), std::string::npos);
}

TEST(Scrubber, LeavesWhatIsNoSecret) {
  for (const char* text : {"max_new_tokens=2048",
                           "pad_token='<pad>'",
                           "eos_token_id: 2",
                           "tokens per second: 512.3",
                           "token: the",
                           "--max-tokens 512",
                           "password = getpass()",
                           "password=None",
                           "api_key = os.environ['X']",
                           "sk-learn",
                           "hf_transfer",
                           "hf_hub_download",
                           "float32[8,1024]",
                           "CUDA out of memory. Tried to allocate 3.06 GiB",
                           "torch 2.13.0+cu130",
                           "nvidia-cudnn-cu12==9.1.0.70",
                           "127.0.0.1:29500",
                           "at::native::add",
                           "std::vector<int>::size",
                           "12:34:56",
                           "_ZN2at6native13reduce_kernelILi512ELi1E",
                           "float64[100]@cpu",
                           "memcpy@GLIBC_2.14",
                           "-----BEGIN CERTIFICATE-----",
                           "7 / 2 and/or x/y",
                           "/usr/lib/python3.11/site-packages/torch/nn.py",
                           "see https://pytorch.org/docs/stable/notes/cuda.html",
                           "GPU:0 by allocator GPU_0_bfc",
                           "/proc/self/exe",
                           "annab banna anna2",
                           "a key: value",
                           "0x7fbc2e000000",
                           "{\"name\": \"batch_size\"}"}) {
    EXPECT_EQ(scrubbed(text), text);
  }
}

TEST(Scrubber, PathsKeepTheirFormAndAgree) {
  const std::vector<std::pair<const char*, const char*>> kRows = {
      {"/home/anna/acme/proj/src/train.py", "/home/user/project/src/train.py"},
      {"/home/anna/acme/proj", "/home/user/project"},
      {"/home/anna/acme/project2/x.py", "/home/user/folder-1/folder-2/x.py"},
      {"/home/anna/.venv/lib/python3.11/site-packages/torch/nn/modules/x.py",
       "/home/user/.venv/lib/python3.11/site-packages/torch/nn/modules/x.py"},
      {"/home/anna", "/home/user"},
      {"/mnt/acme-data/secret/run.py", "/mnt/folder-3/folder-4/run.py"},
      {"/home/anna/My Project/x.py", "/home/user/folder-5/x.py"},
      {"-I/home/anna/include", "-I/home/user/include"},
      {"File \"/home/anna/My Project/x.py\", line 9", "File \"/home/user/folder-5/x.py\", line 9"},
      {"/mnt/acme-data/other.txt:12: in f", "/mnt/folder-3/other.txt:12: in f"},
      {"file:///home/anna/acme/x.py", "file:///home/user/folder-1/x.py"},
      {"PATH=/home/anna/bin:/usr/bin", "PATH=/home/user/bin:/usr/bin"},
      {"C:\\Users\\anna\\x.py", "C:\\Users\\user\\x.py"},
      {"/home/bert/x.py", "/home/user-2/x.py"},
      {"src/anna/train.py", "src/user/train.py"},
      {"anna@deepbox:~$", "user@host:~$"},
      {"saved to /mnt/acme-data/out.", "saved to /mnt/folder-3/folder-6."},
  };
  Scrubber one(anna());
  for (const auto& [text, clean] : kRows) EXPECT_EQ(one.scrub(text), clean);
}

// The folder of runs lies in the project: one folder has one name. A home is no project that another could lie in.
TEST(Scrubber, AFolderInAProjectIsAPartOfIt) {
  Owner owner = anna();
  owner.projects.push_back("/home/anna/acme/proj/.faultline");
  owner.projects.push_back("/home/anna/acme/project");
  Scrubber scrubber(owner);
  EXPECT_EQ(scrubber.scrub("/home/anna/acme/proj/.faultline/train-1/log.txt"),
            "/home/user/project/.faultline/train-1/log.txt");
  EXPECT_EQ(scrubber.scrub("/home/anna/acme/proj/train.py"), "/home/user/project/train.py");
  EXPECT_EQ(scrubber.scrub("/home/anna/acme/project/train.py"), "/home/user/project-2/train.py");
  owner.projects = {"/home/anna", "/home/anna/work/deep"};
  EXPECT_EQ(Scrubber(owner).scrub("/home/anna/work/deep/train.py"), "/home/user/project-2/train.py");
}

TEST(Scrubber, EqualThingsHaveEqualStandIns) {
  Scrubber one(anna());
  const std::string first = "hf_" + kBody, second = "hf_z" + kBody;
  EXPECT_EQ(one.scrub(first + " " + second + " " + first), "<token-1> <token-2> <token-1>");
  EXPECT_EQ(one.scrub("a.b@acme.io 10.1.2.3 c@acme.io 10.1.2.3 fe80::1ff:fe23:4567:890a"),
            "<email-1> <ip-1> <email-2> <ip-1> <ip-2>");
  const Scrubber::Count& tokens = one.counts()[static_cast<std::size_t>(Kind::kToken)];
  EXPECT_EQ(tokens.times, 3U);
  EXPECT_EQ(tokens.different, 2U);
}

TEST(Scrubber, LearnsUsersAndWordsThatAreAskedFor) {
  Owner owner;
  owner.words = {"Zeta"};
  Scrubber one(owner);
  one.learn("x /home/berta/y.py and /Users/carl/z");
  EXPECT_EQ(one.scrub("berta carl bertas xZeta9 /home/berta/y.py"), "user user-2 bertas x<word-1>9 /home/user/y.py");
}

// A long text is looked through in parts of some megabytes, which end between lines, else between values or words.
TEST(Scrubber, NoSecretLiesOverTheSeamOfTwoParts) {
  const std::string secret = "ghp_" + kBody;
  for (const std::string& line :
       {"epoch 1, loss 0.25\n"s, "epoch 1, loss 0.25\r\n"s, "{\"loss\": 0.25}, "s, "epoch 1 "s}) {
    std::string text;
    while (text.size() < (std::size_t{8} << 20) - 1024) text += line;
    while (text.size() < (std::size_t{8} << 20) + 1024) text += line + "logged in with " + secret + line;
    EXPECT_EQ(scrubbed(text).find(secret.substr(secret.size() - 12)), std::string::npos) << line;
  }
}

TEST(Scrubber, AHostileTextCostsItsLength) {
  for (const std::string& text : {std::string(2'000'000, '/'), std::string(2'000'000, '-'), std::string(2'000'000, 'a'),
                                  std::string(2'000'000, ':'), std::string(500'000, '@')})
    EXPECT_EQ(scrubbed(text).size(), text.size());
  std::string pairs;
  for (int i = 0; i < 200'000; ++i) pairs += "-----BEGIN a@";
  EXPECT_FALSE(scrubbed(pairs).empty());
}

}  // namespace
}  // namespace faultline::pack
