// Secrets as people leave them in files: whole private keys, every notation that gives a name something, tokens of many makers, tokens written in escapes.
// Each row is a text with "zq" in all that must go; the clean twins at the end stay as they are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pack/rewrite.h"
#include "pack/scrubber.h"

namespace faultline::pack {
namespace {

// Put together here, so that nobody takes this file for a leak.
const std::string kTail = "B3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM";
const std::string kSecret = "zqR7x" + kTail;

void expect_taken(const std::vector<std::string>& texts, const std::vector<std::string>& others = {}) {
  for (const std::string& text : texts) {
    const std::string clean = Scrubber(Owner{}).scrub(text);
    for (const std::string& other : others) EXPECT_EQ(clean.find(other), std::string::npos) << clean;
    EXPECT_EQ(clean.find("zq"), std::string::npos) << text << "\n→ " << clean;
    EXPECT_EQ(clean.find(kTail.substr(4, 12)), std::string::npos) << text << "\n→ " << clean;
    EXPECT_NE(clean, text);
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

const std::string kLine = "zqIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

TEST(Planted, PrivateKeysInEveryClothing) {
  for (const std::string kind : {"RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ", ""}) {
    const std::string dashes = "-----";
    const std::string pem = dashes + "BEGIN " + kind + "PRIVATE KEY" + dashes + "\n" + kLine + "\n" + kLine +
                            "\nzqab=\n" + dashes + "END " + kind + "PRIVATE KEY" + dashes + "\n";
    const std::string escaped = replaced(pem, "\n", "\\n"), twice = replaced(pem, "\n", "\\\\n");
    expect_taken({pem,
                  escaped,
                  twice,
                  "private_key=" + pem,
                  "private_key=" + escaped,
                  "private_key = \"" + escaped + "\"",
                  "key='" + escaped + "'",
                  "{'private_key': '" + escaped + "', 'x': 1}",
                  "b'" + escaped + "'",
                  "{\n  \"private_key\": \"" + escaped + "\",\n  \"x\": 1\n}\nand more",
                  "PRIVATE_KEY: " + escaped,
                  "\"private_key\": \"" + twice + "\"",
                  "private_key: |\n  " + replaced(pem, "\n", "\n  "),
                  "--private-key \"" + pem + "\"",
                  "[rank0]: " + replaced(pem, "\n", "\n[rank0]: "),
                  "<key>" + pem + "</key>",
                  "KEY='" + pem + "'",
                  replaced(pem, "\n", " "),
                  replaced(pem, "\n", "\r\n"),
                  replaced(replaced(pem, "\n", "%0A"), " ", "%20"),
                  replaced(pem, " ", "+"),
                  "ssh_key: >-\n    " + replaced(pem, "\n", "\n    "),
                  "private_key=\n" + pem,
                  replaced(escaped, "-", "\\u002d")});
    // cut off at its end, and what follows a cut key stays
    const std::string cut = pem.substr(0, pem.find("\nzqab="));
    expect_taken({cut, "x=" + cut, cut + "\nzqshort"});
    const std::string clean = Scrubber(Owner{}).scrub(cut + "\nCUDA out of memory. Tried to allocate 2.00 GiB\n");
    EXPECT_NE(clean.find("CUDA out of memory"), std::string::npos) << clean;
    // cut off at its begin: whatever its lines look like, and what stands before them stays
    const std::string end = pem.substr(pem.find("\nzqab=") + 1);
    const std::string plain = "zqtheprivatekeyofsomebodywhowritesinsmallletters";
    expect_taken({kLine + "\n" + kLine + "\n", plain + "\n" + end, plain + "\n" + plain + "\n" + end,
                  "[rank0]: " + plain + "\n[rank0]: " + end, replaced(plain + "\n" + end, "\n", "\\n")});
    const std::string kept = Scrubber(Owner{}).scrub("CUDA out of memory.\n" + plain + "\n" + end + "and more\n");
    EXPECT_EQ(kept, "CUDA out of memory.\n<private-key-1>\nand more\n");
    // behind another block, in a text within a text
    expect_taken({"-----BEGIN EC PARAMETERS-----\\\\nBggq\\\\n-----END EC PARAMETERS-----\\\\n" +
                  replaced(replaced(pem, kLine, plain), "\n", "\\\\n")});
  }
  expect_taken({"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n" + kLine + "\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + kLine + "\n=zqab\n-----END PGP PRIVATE KEY BLOCK-----"});
}

TEST(Planted, PrivateKeysInJson) {
  for (
      const std::string text :
      {R"({"private_key": "-----BEGIN PRIVATE KEY-----\nzqab\nzqcd\n-----END PRIVATE KEY-----\n"})",
       R"({"note": "x=-----BEGIN PRIVATE KEY-----\\nzqab\\nzqcd\\n-----END PRIVATE KEY-----\\n"})",
       R"({"says": "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nzqab\\nzqcd\\n-----END PRIVATE KEY-----\"}"})"}) {
    Scrubber one{Owner{}};
    const std::string clean = rewritten_json(text, one, {});
    EXPECT_EQ(clean.find("zq"), std::string::npos) << clean;
    EXPECT_TRUE(is_json_text(clean)) << clean;
  }
}

TEST(Planted, NamesOfEveryKind) {
  for (const std::string name :
       {"password",      "passwd",      "pwd",       "Pwd",        "PWD",           "pass",        "passphrase",
        "db_pass",       "DB_PASS",     "user_pw",   "credential", "credentials",   "creds",       "secret",
        "api_key",       "apiKey",      "key",       "KEY",        "signing_key",   "openai_key",  "aws-secret",
        "accountKey",    "SharedKey",   "auth",      "psk",        "client-secret", "HF_TOKEN",    "slack_token",
        "x-api-key",     "password2",   "api_key_1", "sig",        "token",         "oauth_token", "MYAPP_AUTH",
        "encryptionKey", "consumerKey", "passwort",  "session",    "code"}) {
    expect_taken({name + "=" + kSecret, name + ": " + kSecret, name + " = \"" + kSecret + "\"",
                  name + "='" + kSecret + "',", "\"" + name + "\": \"" + kSecret + "\"",
                  "url?" + name + "=" + kSecret + "&x=1", "Server=a;" + name + "=" + kSecret + ";Uid=b",
                  "--" + name + " " + kSecret, "--" + name + "=" + kSecret});
  }
  // short ones, whose name says it all
  expect_taken({"Pwd=zq1", "pass=zqhunter", "credential=zqhunter", "credentials: zqhunter", "Uid=x;Pwd=zqh;",
                "smtp_pass=zqh", "PGPASSWORD=zq", "secret=zqh"});
}

// A key that was encoded as a whole is far longer than a token.
TEST(Planted, LongValues) {
  std::string given;
  for (int i = 0; i < 40; ++i) given += "zqR7xB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM" + std::to_string(i);
  expect_taken({"CERT_B64=" + given, given + "=", "x " + given + "\n", "DEPLOY_KEY=" + given});
}

TEST(Planted, PasswordsOfCommandsThatLookLikeOptions) {
  expect_taken(
      {"mysql -h db -u root -pzqSqlPw3 test", "keytool -list -storepass zqhunter", "keytool -keypass zqhunter"});
  EXPECT_EQ(Scrubber(Owner{}).scrub("mysql -u root -pzqSqlPw3 test"), "mysql -u root -p<password-1> test");
}

TEST(Planted, NotationsThatGiveANameSomething) {
  expect_taken({"<password>zqhunter</password>",
                "<Password type=\"plain\">zqhunter</Password>",
                "<api_key>\n  zqhunter\n</api_key>",
                "<add key=\"Password\" value=\"zqhunter\"/>",
                "<property name=\"password\" value=\"zqhunter\"/>",
                "<input name='password' value='zqhunter'>",
                "&lt;password&gt;zqhunter&lt;/password&gt;",
                "(\"password\", \"zqhunter\")",
                "('api_key', 'zqhunter'),",
                "[\"password\", \"zqhunter\"]",
                "os.environ.setdefault(\"HF_TOKEN\", \"zqhunter\")",
                "os.environ['HF_TOKEN'] = 'zqhunter'",
                "define('DB_PASSWORD', 'zqhunter');",
                "| password | zqhunter |",
                "| db password | zqhunter |",
                "| 1 | root password | zqhunter | prod |",
                "| **password** | `zqhunter` |",
                "password | zqhunter",
                "\xe2\x94\x82 password \xe2\x94\x82 zqhunter \xe2\x94\x82",
                "password\tzqhunter",
                "password,zqhunter",
                "machine h.example login u password zqhunter",
                "machine h.example\n  login u\n  password zqhunter\n",
                "password is zqhunter",
                "the password was \"zqhunter\"",
                "api_key is zqhunter12",
                "setenv HF_TOKEN zqhunter12",
                "aws configure set aws_secret_access_key zqhunter12",
                "- name: HF_TOKEN\n  value: zqhunter",
                "- name: DB_PASSWORD\n  value: \"zqhunter\"",
                "password: >-\n  zqone\n  zqtwo\n",
                "secret: |\n    zqone two\n    zqthree\nnext: 1",
                "api_key: >\n  zqone\n",
                "**Password:** zqhunter",
                "**Password**: zqhunter",
                "password -> zqhunter",
                "Password : zqhunter",
                "auth=(\"someone\", \"zqhunter\")",
                "password=[\"zqone\", \"zqtwo\"]",
                "password = (\n  'zqone'\n  'zqtwo')",
                "password=\"zqone\\nzqtwo\"",
                "&quot;password&quot;: &quot;zqhunter&quot;",
                "{\\\"password\\\": \\\"zqhunter\\\"}",
                "passin pass:zqhunter",
                "Authorization: Basic zqhunter=="});
  expect_taken({"password = '''zqhunter'''",
                "password = \"\"\"zqone\nzqtwo\"\"\"",
                "password: str = \"zqhunter\"",
                "password: Optional[str] = 'zqhunter'",
                "val apiKey: String = \"zqhunter\"",
                "#define API_KEY \"zqhunter\"",
                "password: !vault |\n  zqone\n  zqtwo\n",
                "password: !ENV 'zqhunter'",
                "password:\n- zqhunter\n",
                "  password:\n    - zqone\n    - zqtwo\n",
                "<property name=\"db.password\">zqhunter</property>",
                "<entry key='api.key'>zqhunter</entry>",
                "<string name=\"api_key\" translatable=\"false\">zqhunter</string>",
                "<secret><![CDATA[zqhun<ter]]></secret>",
                "<property name=\"password\"><![CDATA[zqhunter]]></property>",
                "seen {\"name\": \"API_KEY\", \"value\": \"zqhunter\"} there",
                "{name: 'DB_PASSWORD', value: 'zqhunter'}",
                "Password for user me: zqhunter",
                "password for 'https://me@h.example': zqhunter!",
                "machine h.example\nlogin me\npassword\nzqhunter\n",
                "machine h.example\n  login me\n  password zqhunter!\n",
                "jdbc:oracle:thin:me/zqhunter@h:1521:x",
                "SECRET_KEY_BASE=zqhunter",
                "_auth = zqhunter"});
  expect_taken({"docker login -u someone -p zqhunter registry.example", "docker login -pzqhunter",
                "sshpass -p zqhunter ssh x", "podman login -p 'zqhunter' x", "redis-cli -a zqhunter ping",
                "unzip -P zqhunter a.zip", "az login -u x -p zqhunter", "docker login --password zqhunter",
                "mysql -u root -pzqhunter", "Basic zq" + kTail + "=="});
}

TEST(Planted, WhatACallAnObjectOrAnElementHolds) {
  expect_taken({"token=SecretStr('zqhunter77')",
                "password: SecretStr = SecretStr(\"zqhunter\")",
                "val password: Option[String] = Some(\"zqhunter\")",
                "{\"password\": {\"value\": \"zqhunter\"}} and more",
                "seen {\"value\": \"zqhunter\", \"name\": \"HF_TOKEN\"} there",
                "<conn:Password>zqhunter</conn:Password>",
                "<wsse:Password Type=\"text\">zqhunter</wsse:Password>",
                "<key>password</key>\n<string>zqhunter</string>",
                "<name>api_key</name><value>zqhunter</value>",
                "setPassword(\"zqhunter\")",
                "builder.api_key(\"zqhunter\")",
                "keyring.set_password('service', 'me', 'zqhunter')",
                "smtp.login('me', 'zqhunter')",
                "auth=HTTPBasicAuth('me', 'zqhunter')",
                "Fernet(b'zqhunter')",
                "add_argument('--api-key', type=str, default='zqhunter')",
                "@click.option(\"--token\", default=\"zqhunter7\")",
                "variable \"password\" {\n  default = \"zqhunter\"\n}",
                "password = os.environ.get('PW') or 'zqhunter'",
                "{password, \"zqhunter\"}",
                "set(PASSWORD \"zqhunter\")",
                "setenv PASSWORD zqhunter",
                "MYSQLPASS=zqhunter",
                "\"passwords\": [\"zqhunter\", \"zqother\"]",
                "userPassWord=zqhunter",
                "API key: zqhunter",
                "Secret Access Key = zqhunter",
                "pin: 4829130",
                "password \xe2\x87\x92 zqhunter",
                "logging in with password zqhunter7"},
               {"4829130"});
  for (const std::string text :
       {R"({"value": "zqhunter", "name": "HF_TOKEN"})", R"([{"value":"zqhunter","key":"api_key"}])"}) {
    Scrubber one{Owner{}};
    EXPECT_EQ(rewritten_json(text, one, {}).find("zq"), std::string::npos);
  }
}

TEST(Planted, WhatTheFormOfAStatementTells) {
  expect_taken({"ALTER USER bob WITH PASSWORD 'zqhunter'",
                "CREATE USER bob IDENTIFIED BY 'zqhunter'",
                "CREATE USER bob IDENTIFIED WITH some_plugin BY 'zqhunter'",
                "SET PASSWORD FOR 'bob'@'%' = 'zqhunter'",
                "ConvertTo-SecureString 'zqhunter' -AsPlainText",
                "requirepass zqhunter",
                "smbclient //host/share -U bob%zqhunter",
                "mongo -u bob -p zqhunter",
                "openssl enc -aes256 -k zqhunter",
                "snmpwalk -v2c -c zqhunter host",
                "htpasswd -b file bob zqhunter",
                "htpasswd -nb bob zqhunter",
                "echo zqhunter | sudo -S ls",
                "echo zqhunter | docker login -u me --password-stdin",
                "sudo -S <<< zqhunter",
                "rabbitmqctl add_user bob zqhunter",
                "net use z: \\\\host\\share zqhunter /user:bob",
                "net user bob zqhunter /add",
                "['docker', 'login', '-u', 'me', '-p', 'zqhunter', 'registry']",
                "mot de passe : zqhunter",
                "contrase\xc3\xb1"
                "a: zqhunter",
                "\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c: zqhunter",
                "\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89\xef\xbc\x9azqhunter",
                "password%253Dzqhunter",
                "%2525252Fdata%2525252Fzqclient%2525252Fx.py"});
}

TEST(Planted, TablesWhoseHeaderNamesASecret) {
  expect_taken({"| user | password |\n|------|----------|\n| x | zqone |\n| y | zqtwo |\n",
                "user,password,host\nx,zqone,h\ny,zqtwo,h\n", "user\tapi_key\nx\tzqone\n",
                " user | passwd \n------+--------\n x | zqone\n", "user;password;host\nx;zqone;h\n",
                "user  password\nx     zqone\ny     zqtwo\n", "  NAME    API_KEY    AGE\n  x       zqone      3d\n",
                "\xe2\x94\x82 user \xe2\x94\x82 secret \xe2\x94\x82\n\xe2\x94\x9c\xe2\x94\x80\n\xe2\x94\x82 x "
                "\xe2\x94\x82 zqone \xe2\x94\x82\n"});
  const std::string after = "user,password\nx,zqone\nCUDA out of memory\na,b\n";
  EXPECT_EQ(Scrubber(Owner{}).scrub(after), "user,password\nx,<password-1>\nCUDA out of memory\na,b\n");
}

TEST(Planted, TokensOfManyMakers) {
  std::vector<std::string> texts;
  for (const std::string begin :
       {"hvs.",     "hvb.",      "dckr_pat_", "dckr_oat_",    "pplx-",           "tskey-auth-",   "gsk_",
        "hf_",      "glpat-",    "glsa_",     "rpa_",         "pcsk_",           "sk-ant-api03-", "sk-or-v1-",
        "lsv2_pt_", "sntryu_",   "figd_",     "dp.pt.",       "ATATT3xFfGF0",    "tvly-",         "tgp_v1_",
        "ntn_",     "pul-",      "shpss_",    "NRAK-",        "sk_live_",        "PMAK-",         "jina_",
        "fw_",      "rubygems_", "csk-",      "xoxe.xoxp-1-", "AGE-SECRET-KEY-1"})
    texts.insert(texts.end(), {begin + kSecret, "x=" + begin + kSecret, "(" + begin + kSecret + ")"});
  texts.insert(texts.end(), {"https://a.blob.core.windows.net/c?sv=2022&sig=zq7x%2B" + kTail + "%3D&se=2030",
                             "https://b.s3.amazonaws.com/k?X-Amz-Signature=zq" + kTail + kTail + "&X-Amz-Date=1",
                             "https://storage.googleapis.com/b/o?X-Goog-Signature=zq" + kTail + kTail,
                             "https://d.cloudfront.net/a?Expires=1&Signature=zq" + kTail + "__&Key-Pair-Id=APKA",
                             "AccountName=a;AccountKey=zq" + kTail + kTail + "==;EndpointSuffix=core.windows.net",
                             "SharedAccessSignature sr=x&sig=zq" + kTail + "%3d&se=1",
                             "bot 945558583:AAzq3430hMhvOMmnUAAk3wmgzotHddyLXev says", "x SKzq" + kTail + " y",
                             "eyJhbGciOiJSU0EtT0FFUCJ9.zqab12.zqcd34.zqefgh.zqijkl",
                             "wrote " + kSecret + kTail + " to it", "id " + kSecret + "/" + kTail + "+x=="});
  expect_taken(texts);
}

TEST(Planted, TokensWrittenInEscapes) {
  const std::string body = "R7x" + kTail;
  expect_taken({"hf%5Fzq" + body,           "%68%66_zq" + body,        "hf\\u005fzq" + body,
                "\\u0068f_zq" + body,       "hf\\x5fzq" + body,        "hf&#95;zq" + body,
                "hf&#x5f;zq" + body,        "ghp%5fzq" + body,         "password%3Dzqhunter",
                "api_key\\u003dzqhunter",   "\\u0070assword=zqhunter", "pass%77ord=zqhunter",
                "hf\\\\u005fzq" + body,     "token%3A%20hf_zq" + body, "hf\\137zq" + body,
                "\\150\\146_zq" + body,     "\\U00000068f_zq" + body,  "hf\\u{5f}zq" + body,
                "hf_\xe2\x80\x8bzq" + body, "hf\xc2\xad_zq" + body,    "pass\xe2\x80\x8bword=zqhunter"});
}

TEST(Planted, WhatIsNoSecretStays) {
  for (const std::string text :
       {"key=3",
        "key: value",
        "for key, value in items",
        "KeyError: 'model.layers.0.self_attn.q_proj.weight'",
        "key=model.layers.12.mlp.fc1.weight",
        "size mismatch for key layer12",
        "forward pass: 0.12s",
        "pass=12",
        "pass 1 of 3",
        "tokens=512",
        "token: the",
        "eos_token='</s>'",
        "unk_token=\"[UNK]\"",
        "image_token=<image>",
        "code=1",
        "exit code: 137",
        "status_code=200",
        "session 3",
        "auth: none",
        "public_key_path",
        "primary_key=id1234567890ab12",
        "cache_key=ab12cd34ef56",
        "PWD=/tmp/x.py",
        "password | string",
        "| the old password | is required |",
        "password | string",
        "<password></password>",
        "<password/>text<x>",
        "password: str",
        "password: str = None",
        "def f(password: str, x: int = 3)",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "user  pid  memory\nroot  12  3\n",
        "<property name=\"batch\">zq</property>",
        "\\1 \\12 \\200",
        "caf\xc3\xa9 \xe2\x86\x92 \xef\xbc\xa1",
        "a\xe2\x80\x8b"
        "b",
        "SKLEARN",
        "passwordless",
        "password = getpass(\"Password: \")",
        "secret = load_secret(\"db\")",
        "password = config.get(\"password\")",
        "password = unicodedata.normalize(\"NFC\", password)",
        "print(f\"password={password!r}\")",
        "get_token('hf')",
        "self.set_cookie(\"name\", \"value\")",
        "tokenizer.pad_token = tokenizer.eos_token",
        "key(\"a\")",
        "self.cls_token = nn.Parameter(torch.zeros(1, 1, config.hidden_size))",
        "size_t token = ReadSymbol(ctx, br);",
        "the password \"required\" is missing",
        "{\"value\": \"adamw\", \"name\": \"optimizer\"}",
        "add_argument('--max-tokens', default='512')",
        "add_argument('--lr', default='3e-4')",
        "<key>epochs</key>\n<string>zq</string>",
        "net use of memory grew by 3 GiB",
        "the net user count is 3",
        "identified by 3 labels",
        "echo done | tee log",
        "BYPASS=yes",
        "pin: 3",
        "wandb login required",
        "device token: 12",
        "100%2520 of it",
        "login(\"me\", x)",
        "docker run -p 8080:80 --name \"x\" y",
        "docker run -p 8080:80 x",
        "ssh -p 2222 x",
        "--passes 3",
        "a user, a password, and a host",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "at::detail::Array<char*, 3>>",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEENS_6detail5ArrayIPcLi3EEEEEviT0_T1_",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__"
        "5x_cublas",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "GemmUniversalAdapterSm90TmaWarpSpecializedCooperative",
        "triton__0d1d2de3de4d",
        "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>",
        "GPU-8f3a2b1c-77aa-4bcd-9e10-2a3b4c5d6e7f",
        "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
        "Basic information follows",
        "libtorch_cuda.so",
        "loss 50%ab",
        "a &amp; b",
        "100%25",
        "R&D",
        "x&#233;",
        "\\x7fELF",
        "0x7fbc2e000000",
        "sequence_length=2048 max_position_embeddings=8192",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate(handle)",
        "NVIDIA H100 80GB HBM3",
        "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
        "Qwen2.5-VL-7B-Instruct-GPTQ-Int4",
        "2026-01-31T12:00:00.123456Z",
        "UserWarning: `resume_download` is deprecated",
        "-----BEGIN CERTIFICATE-----",
        "std::pair<key, value>",
        "Secret::Secret",
        "Expected canUse32BitIndexMath(input) to be true",
        "const key = x;"})
    EXPECT_EQ(Scrubber(Owner{}).scrub(text), text);
}

}  // namespace
}  // namespace faultline::pack
