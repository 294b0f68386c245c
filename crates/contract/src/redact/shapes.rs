//! The shapes that secrets have.

/// What stands before a secret: the start, no letter or digit, or what is a letter only as it is written: a line end or another
/// character of JSON, a character of a URL (`%3D`), the end of a color.
pub(super) const BEFORE: &str =
    r"(?:^|[^A-Za-z0-9]|\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m)";

/// Shapes that are secrets wherever they stand, each with a part that every secret of the shape has, so that most text is
/// passed over in one quick look. Source: what the issuers document of their formats.
pub(super) const SHAPES: &[(&str, &str)] = &[
    // GitHub, GitLab, Bitbucket and Atlassian.
    ("ghp_", r"ghp_[A-Za-z0-9]{20,}"),
    ("gho_", r"gho_[A-Za-z0-9]{20,}"),
    ("ghs_", r"ghs_[A-Za-z0-9]{20,}"),
    ("ghu_", r"ghu_[A-Za-z0-9]{20,}"),
    ("ghr_", r"ghr_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("glpat-", r"glpat-[A-Za-z0-9_.-]{16,}"),
    ("gldt-", r"gldt-[A-Za-z0-9_.-]{16,}"),
    ("glrt-", r"glrt-[A-Za-z0-9_.-]{16,}"),
    ("glcbt-", r"glcbt-[A-Za-z0-9_.-]{16,}"),
    ("glptt-", r"glptt-[A-Za-z0-9_.-]{16,}"),
    ("glft-", r"glft-[A-Za-z0-9_.-]{16,}"),
    ("gloas-", r"gloas-[A-Za-z0-9_.-]{16,}"),
    ("glsoat-", r"glsoat-[A-Za-z0-9_.-]{16,}"),
    ("glagent-", r"glagent-[A-Za-z0-9_.-]{16,}"),
    ("ATATT3", r"ATATT3[A-Za-z0-9_=-]{20,}"),
    ("ATBB", r"ATBB[A-Za-z0-9]{24,}"),
    // Clouds.
    ("AKIA", r"AKIA[0-9A-Z]{16}(?-u:\b)"),
    ("ASIA", r"ASIA[0-9A-Z]{16}(?-u:\b)"),
    ("AIza", r"AIza[0-9A-Za-z_-]{35}"),
    ("ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("dapi", r"dapi[a-f0-9]{32}(?:-[0-9])?(?-u:\b)"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("pul-", r"pul-[a-f0-9]{40}(?-u:\b)"),
    ("hvs.", r"hvs\.[A-Za-z0-9_-]{20,}"),
    ("hvb.", r"hvb\.[A-Za-z0-9_-]{20,}"),
    ("hvr.", r"hvr\.[A-Za-z0-9_-]{20,}"),
    ("FlyV1 ", r"FlyV1 fm[0-9]_[A-Za-z0-9+/=_,-]{20,}"),
    ("HRKU-", r"HRKU-[A-Za-z0-9_-]{20,}"),
    ("1//0", r"1//0[A-Za-z0-9_-]{40,}"),
    ("7Q~", r"[A-Za-z0-9_~.]{3}7Q~[A-Za-z0-9_~.-]{31,34}"),
    ("8Q~", r"[A-Za-z0-9_~.]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),
    ("dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{40,}"),
    ("tskey-", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}"),
    ("sbp_", r"sbp_[a-f0-9]{40,}"),
    ("sb_secret_", r"sb_secret_[A-Za-z0-9_-]{20,}"),
    ("pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}"),
    ("napi_", r"napi_[a-z0-9]{40,}"),
    ("nfp_", r"nfp_[A-Za-z0-9]{36,}"),
    ("rnd_", r"rnd_[A-Za-z0-9]{28,}"),
    ("LTAI", r"LTAI[A-Za-z0-9]{20}(?-u:\b)"),
    ("dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    // Registries of packages and of images.
    ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("rubygems_", r"rubygems_[a-f0-9]{40,}"),
    ("dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("oy2", r"oy2[a-z0-9]{43}(?-u:\b)"),
    ("CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
    // Builds and what looks after code.
    ("CCIPAT_", r"CCIPAT_[A-Za-z0-9]+_[a-f0-9]{40}"),
    ("CCIPRJ_", r"CCIPRJ_[A-Za-z0-9]+_[a-f0-9]{40}"),
    ("bkua_", r"bkua_[a-f0-9]{40}"),
    ("sgp_", r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}"),
    ("squ_", r"squ_[a-f0-9]{40}(?-u:\b)"),
    ("sqp_", r"sqp_[a-f0-9]{40}(?-u:\b)"),
    ("sqa_", r"sqa_[a-f0-9]{40}(?-u:\b)"),
    // Models.
    ("hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("xai-", r"xai-[A-Za-z0-9]{40,}"),
    ("pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    ("nvapi-", r"nvapi-[A-Za-z0-9_-]{40,}"),
    ("lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("tvly-", r"tvly-[A-Za-z0-9_-]{20,}"),
    ("csk-", r"csk-[a-z0-9]{40,}"),
    ("pcsk_", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("jina_", r"jina_[A-Za-z0-9_-]{40,}"),
    // Payments, mail, chat and other services.
    ("k_live_", r"[sr]k_live_[A-Za-z0-9]{16,}"),
    ("k_test_", r"[sr]k_test_[A-Za-z0-9]{16,}"),
    // Our own tokens.
    ("thp_", r"thp_[a-f0-9]{8}_[a-f0-9]{64}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("sq0atp-", r"sq0atp-[A-Za-z0-9_-]{22,}"),
    ("sq0csp-", r"sq0csp-[A-Za-z0-9_-]{22,}"),
    ("shpat_", r"shpat_[A-Fa-f0-9]{32,}"),
    ("shpca_", r"shpca_[A-Fa-f0-9]{32,}"),
    ("shppa_", r"shppa_[A-Fa-f0-9]{32,}"),
    ("shpss_", r"shpss_[A-Fa-f0-9]{32,}"),
    ("SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("key-", r"key-[0-9a-f]{32}(?-u:\b)"),
    ("xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    ("xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    (":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
    ("ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("figd_", r"figd_[A-Za-z0-9_-]{30,}"),
    ("PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("glsa_", r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    ("glc_", r"glc_[A-Za-z0-9+/=]{32,}"),
    ("sntry", r"sntry[su]_[A-Za-z0-9+/=_]{32,}"),
    ("NRAK-", r"NRAK-[A-Z0-9]{27}"),
    ("secret_", r"secret_[A-Za-z0-9]{43}(?-u:\b)"),
    ("-us1", r"[a-f0-9]{32}-us1[0-9]?(?-u:\b)"),
    ("-us2", r"[a-f0-9]{32}-us2[0-9]?(?-u:\b)"),
    ("xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("pat-na", r"pat-na[0-9]-[a-f0-9]{8}-[a-f0-9-]{27}"),
    ("pat-eu", r"pat-eu[0-9]-[a-f0-9]{8}-[a-f0-9-]{27}"),
    ("CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,}"),
    ("sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    ("$production$", r"access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("FLWSECK", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}-X"),
    ("EZAK", r"EZAK[A-Za-z0-9]{54}"),
    ("EZTK", r"EZTK[A-Za-z0-9]{54}"),
    ("ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=_-]{40,}"),
    // A private key of RFC 7468 in Base64, as Kubernetes has it: `-----BEGIN PRIVATE KEY`, `RSA`, `EC`, `OPENSSH` and so on.
    (
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi(?:BQUklW|BSU0Eg|BFQyBQ|BPUEVO|BEU0Eg|BFTkNS|BQR1AgUFJJ)[A-Za-z0-9+/]{20,}(?:\s+[A-Za-z0-9+/]{60,})*(?:\s+[A-Za-z0-9+/]{2,}=)?={0,2}",
    ),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
];

/// Shapes with something before the secret that is kept, which is the first group.
pub(super) const BEHIND: &[(&str, &str)] = &[
    (
        "hooks.slack.com/",
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/(?:[TABE][A-Z0-9]+/)*)[A-Za-z0-9+/_-]{16,}",
    ),
    // Our own links that sign somebody in. The character before the path may be a digit of a port.
    ("/login/", r"(/login/)[a-f0-9]{32,}"),
    // The cookie of somebody who is signed in to the workbench.
    ("toolhost", r"(toolhost(?:-[0-9]+)?=)[a-f0-9]{64}"),
    ("/api/webhooks/", r"(discord(?:app)?\.com/api/webhooks/[0-9]+/)[A-Za-z0-9_-]{30,}"),
    (".webhook.office.com/", r"(\.webhook\.office\.com/webhookb2/)[A-Za-z0-9@/-]{40,}"),
    ("AccountKey=", r"(AccountKey=)[A-Za-z0-9+/]{40,}={0,2}"),
    ("SharedAccessKey=", r"(SharedAccessKey=)[A-Za-z0-9+/]{40,}={0,2}"),
    // The signature of an address of Azure, which opens what it leads to.
    ("sig=", r"([?&;]sig=)[A-Za-z0-9%+/]{43,}={0,2}"),
    ("SSWS ", r"(SSWS )00[A-Za-z0-9_-]{40}"),
    // A name and a password as Docker and npm keep them.
    ("\"auth\"", r#"("auth"\s*:\s*")[A-Za-z0-9+/]{12,}={0,2}"#),
    ("_auth", r#"((?:^|[\s:"'])_auth ?= ?"?)[A-Za-z0-9+/]{12,}={0,2}"#),
    // The private part of a key (RFC 7518, section 6).
    ("\"d\"", r#"("(?:d|p|q|dp|dq|qi|k)"\s*:\s*")[A-Za-z0-9_-]{40,}"#),
    // Of a key of PuTTY its private lines.
    ("Private-Lines:", r"(Private-Lines: [0-9]+\r?\n)(?:[A-Za-z0-9+/]{64}\r?\n)*[A-Za-z0-9+/]+={0,2}"),
    ("ookie:", r"(?i)((?:set-)?cookie:\s*[^\s=;]+=)[A-Za-z0-9+/=_%.-]{16,}"),
    // A file of Docker's sets a variable without a sign of its own.
    ("ENV ", r"(ENV +[A-Z0-9_]*(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?)[A-Z0-9_]* +)[^\s$<]{8,}"),
    // `.pgpass`: host, port, database, user and password.
    (":5432:", r"(:5432:[^\s:]+:[^\s:]+:)[^\s:]{6,}"),
    ("*:*:", r"(\*:\*:[^\s:]+:)[^\s:*]{6,}"),
    // A password on the command line of MySQL or MariaDB.
    ("mysql", r#"(mysql[a-z]*\s(?:[^\n;|&]*?\s)?-p)[^\s"'$]{6,}"#),
    ("mariadb", r#"(mariadb[a-z-]*\s(?:[^\n;|&]*?\s)?-p)[^\s"'$]{6,}"#),
    // A name and a password on the command line of curl.
    ("curl", r#"(curl[^\n]*?\s(?:-u|--user)[ =]?["']?[^\s"':$]+:)[^\s"'$]{6,}"#),
];

/// Shapes that words with hyphens have, too, such as names of classes: what issuers make has digits. The first group is kept.
pub(super) const WITH_DIGITS: &[(&str, &str)] = &[
    ("sk-", r"((?:^|[^A-Za-z0-9_]|\\[nrtbf]))sk-[A-Za-z0-9_-]{16,}"),
    ("earer", r"([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}"),
];

/// A variable whose name tells that its value is a secret. The first group is kept. The value ends where a shell would end a
/// word or a command, so redaction hides no command from a person.
pub(super) const ASSIGNED: &str = r#"((?:^|[^A-Za-z0-9_]|\\[nrtbf])[A-Z0-9_]*(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|PRIVATE_KEY)[A-Z0-9_]*=(?:\\*["'])?)[^\s"'`$(){}<>\[\];&|]{8,}"#;

/// A name and a password as they are sent with a request (RFC 7617). The first group is kept.
pub(super) const BASIC: &str = r#"(?i)(authorization(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?basic\s+)[a-z0-9+/=_-]{8,}"#;
/// What else is sent with a request to say who asks (RFC 9110, section 11.6.2). The first group is kept, and the rest is a
/// secret if it has digits.
pub(super) const AUTHORIZATION: &str =
    r#"(?i)(authorization(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?(?:(?:bearer|token|apikey)\s+)?)[a-z0-9._~+/=:-]{12,}"#;

/// A value beside a name that tells of a secret, where the value is long. The first group is kept, and the second is a secret
/// if it [is random](is_random).
pub(super) const LONG_NAMED: &str = concat!(
    r#"(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|auth[_-]?key|hmac[_-]?key|pre[_-]?shared[_-]?key"#,
    r#"|encryption[_-]?key|signing[_-]?key|master[_-]?key|app[_-]?key|subscription-key|credential|token)[a-z0-9_-]*"#,
    // What ends the name: `["name"]`, `'name',`; its type: `: &str`; and what leads to the value: `=`, `:`, `>`, the `|` of a
    // table, `%3D`, `value="`, a block of YAML.
    r#"(?:\\*["'`])?[\])]?(?:\s*:\s*&?[a-z]+(?:\s+[a-z]+)?\s*=\s*|\s*(?:\?=|:=|=>|[:=,>|]|%3d)\s*(?:[|>][+-]?\s+|!!?[a-z]+\s+)?|\s+value\s*[:=]\s*|\s*\(\s*["'`]|\s)"#,
    r#"\[?(?:[bruf]{0,2}(?:\\*["'`]){1,3}|%22)?)([a-z0-9+/=_~.-]{16,})"#,
);
/// Words of a name that tell of no secret although another word of it does: where to go on in a list is not one.
pub(super) const NAMED_OTHERWISE: &[&str] =
    &["page", "next", "continu", "cursor", "sync", "hash", "digest", "tokenizer", "public", "count"];
/// What such a name ends in where it tells where a secret is, or of which kind.
const NAMED_ABOUT: &[&str] = &[
    "id", "name", "file", "path", "dir", "url", "uri", "type", "length", "ttl", "endpoint", "sha", "sha1", "sha256",
    "sum", "version", "ref",
];
/// A shorter word may be one that people write.
pub(super) const RANDOM_CHARS_MIN: usize = 16;
/// So often a letter and a digit stand side by side in what was made by chance, and hardly ever in what people write.
pub(super) const TURNS_MIN: usize = 4;

/// What the other shapes have at least one of, in the ways in which such names are written.
pub(super) const NAMES: &[&str] = &[
    "PRIVATE KEY",
    "PRIVATE_KEY",
    "private_key",
    "private-key",
    "privateKey",
    "PrivateKey",
    "privatekey",
    "API_KEY",
    "APIKEY",
    "api_key",
    "api-key",
    "apiKey",
    "ApiKey",
    "Api-Key",
    "API-Key",
    "apikey",
    "ACCESS_KEY",
    "access_key",
    "access-key",
    "accessKey",
    "AccessKey",
    "accesskey",
    "ACCOUNT_KEY",
    "account_key",
    "accountKey",
    "AccountKey",
    "AUTH_KEY",
    "auth_key",
    "authKey",
    "AuthKey",
    "authkey",
    "HMAC_KEY",
    "hmac_key",
    "hmacKey",
    "PRESHARED",
    "reshared",
    "resharedKey",
    "re_shared",
    "ENCRYPTION",
    "ncryption",
    "SIGNING",
    "igning",
    "MASTER",
    "aster_key",
    "asterKey",
    "APP_KEY",
    "app_key",
    "appKey",
    "ubscription",
    "SECRET",
    "Secret",
    "secret",
    "TOKEN",
    "Token",
    "token",
    "PASSW",
    "Passw",
    "passw",
    "pwd",
    "PWD",
    "pw:",
    "pw=",
    "PW:",
    "PW=",
    "jwt",
    "JWT",
    "otp",
    "OTP",
    "rivate key",
    "pass:",
    "pass=",
    "Pass:",
    "PASS:",
    "PASS=",
    "ennwort",
    "ot de passe",
    "ontrase",
    "enha",
    "achtwoord",
    "арол",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "eslo",
    "arola",
    "senord",
    "assord",
    "ifre",
    "elsz",
    "alasana",
    "dgangskode",
    "asło",
    "كلمة",
    "api key",
    "API key",
    "Api key",
    "API Key",
    "ccess key",
    "PASSPHRASE",
    "Passphrase",
    "passphrase",
    "CREDENTIAL",
    "Credential",
    "credential",
    "AUTHORIZATION",
    "Authorization",
    "authorization",
];

/// A name that tells of a secret, and in the second group the value beside it. Many such values are no secrets, so they are
/// reported and not taken out.
pub(super) const NAMED: &str = r#"(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|token)[a-z0-9_-]*["'`]?\s*[:=]\s*["'`]?)([^\s"'`$(){}<>\[\],;]{8,})"#;

/// What leads from a name to its value: whose it is, and then a sign or a word. `password for bob: x`, `Password (test): x`,
/// `password → x`, `password is x`; and the field beside the one that has the name: `"name": "PASSWORD", "value": "x"`.
macro_rules! leads_to {
    () => {
        concat!(
            r#"(?:\\*["'`]|&#3[49];|\*{1,2}|</?[a-z]{1,6}>)?(?:\s+(?:for|of|für|pour|para)\s+(?:the\s+)?[a-z0-9_.@-]+)?(?:\s*\([^()\n]{1,40}\))?"#,
            r#"(?:\s*,?\s*(?:\\*["'`])?value(?:\\*["'`])?\s*[:=]\s*|\s*(?:=>|:=|->|[:=：|→]|%3d)\s*|\s+(?:is|was|ist|war|est|es|é):?\s+|\s+[-–—]\s+)"#,
            r#"(?:\\*["'`]|&#3[49];|\*{1,2}\s?|</?[a-z]{1,6}>\s?){0,2}"#,
        )
    };
}

/// A password beside its name, however short, also in HTML, where quotes are references (`&#34;`). The first group is kept, and the second is a secret if it [may be one](is_password).
pub(super) const PASSWORD: &str = concat!(
    r#"(?i)((?:pass(?:word|wd|phrase|wort)|(?:\b|_)pass|(?:\b|_)pwd|\bpw|kennwort|mot de passe|contrase[nñ]a|senha|wachtwoord|парол[ья]|密码|密碼|パスワード|비밀번호"#,
    r#"|heslo|\bparola|lösenord|passord|şifre|jelszó|salasana|adgangskode|hasło|كلمة المرور|كلمة السر)"#,
    leads_to!(),
    // An option of a command.
    r#"|--pass(?:word|wd|phrase)\s+["']?)"#,
    r#"([a-z0-9!@#$%^&*?+~_.-]{6,64})"#,
);

/// A value beside a name that tells of a secret, where the value is short. The first group is kept, and the second is a secret
/// if it is [no name](is_no_name).
pub(super) const SHORT_NAMED: &str = concat!(
    r#"(?i)([a-z0-9_.-]*(?:secret|api[ _-]?key|access[ _-]?key|private[ _-]?key|token|credential|\bjwt|\botp)[a-z0-9_-]*"#,
    leads_to!(),
    r#")([a-z0-9!@#$%^&*?+~_./-]{6,})"#,
);
/// How names of methods and encodings begin, which stand where a password could.
const METHODS: &[&str] =
    &["sha", "md5", "argon", "oauth", "bcrypt", "scrypt", "pbkdf", "base", "utf", "aes", "rsa", "hs", "rs"];

/// Whether a name is that of a password, such as `dbPassword`.
pub(super) fn names_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase"].iter().any(|end| name.ends_with(end))
}

/// Whether what stands beside the name of a password may be one: it has a digit, and is neither a call nor the name of a method.
pub(super) fn is_password(value: &str, behind: &str) -> bool {
    let word = value.to_ascii_lowercase();
    let is_method =
        METHODS.iter().any(|method| word.starts_with(method)) && word.bytes().all(|b| b.is_ascii_alphanumeric());
    value.bytes().any(|byte| byte.is_ascii_digit()) && !is_method && !behind.starts_with(['(', '[', '{'])
}

/// Whether the value beside the name of a secret is one, and not the name of something: a word of it has letters and digits that take
/// turns, or letters and as many digits as no version has. In `secret-of-2026` and `TokenV2` none has. A text in quotes is a value, and
/// `client_secret` says more than `token` does: there letters and a digit are enough. `name`: with what leads to the value.
pub(super) fn is_no_name((name, value): (&str, &str), behind: &str) -> bool {
    let is_quoted = name.ends_with(['"', '\'', '`']);
    let word =
        name.trim_start().split(|c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c))).next().unwrap_or_default();
    let says_more = !word.contains('.') && !BARE_NAMES.contains(&&*word.to_ascii_lowercase());
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let is_mixed = |word: &str| {
        let bytes = word.as_bytes();
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        let goes_on = bytes.windows(2).any(|pair| pair[0].is_ascii_digit() && is_letter(&pair[1]));
        let is_version = bytes.windows(2).any(|pair| matches!(pair[0], b'v' | b'V') && pair[1].is_ascii_digit());
        let is_enough = digits > 0 && ((goes_on && !is_version) || is_quoted || (says_more && !is_version));
        bytes.iter().any(is_letter) && (digits >= DIGITS_OF_SECRET_MIN || is_enough)
    };
    let ends_as_file =
        value.rsplit_once('.').is_some_and(|(_, end)| end.len() <= 4 && end.bytes().all(|b| is_letter(&b)));
    let is_place =
        value.starts_with(['/', '.', '~']) || (value.contains('/') && value.len() < PATHLIKE_SECRET_CHARS_MIN);
    is_password(value, behind)
        && !ends_as_file
        && !is_place
        && !value.to_ascii_lowercase().starts_with("0x")
        && value.split(['-', '_', '.', '/']).any(is_mixed)
}

/// Names that code gives to much else.
const BARE_NAMES: &[&str] =
    &["api", "access", "private", "the", "secret", "secrets", "token", "tokens", "credential", "credentials"];
/// A version or a number of a name has fewer.
const DIGITS_OF_SECRET_MIN: usize = 3;
/// Shorter values with a `/` are places of files.
const PATHLIKE_SECRET_CHARS_MIN: usize = 32;

/// Whether what a name of a password leads to is a time or a count: test runners write `pass: 12.345s`.
pub(super) fn is_measured(name: &str, value: &str) -> bool {
    let name = name.trim_start().to_ascii_lowercase();
    name.starts_with("pass") && !name[4..].starts_with(['w', 'p']) && value.starts_with(|c: char| c.is_ascii_digit())
}

/// Where the text of a private key begins (RFC 7468, and RFC 9580 for PGP).
pub(super) const KEY_BEGINS: &str = "-----BEGIN (?:[A-Z ]*PRIVATE KEY|PGP PRIVATE KEY BLOCK)-----";
/// Where it ends.
pub(super) const KEY_ENDS: &str = "-----END (?:[A-Z ]*PRIVATE KEY|PGP PRIVATE KEY BLOCK)-----";
/// Whether a name that tells of a secret has no word that tells of something else. Behind it may stand what leads to the value;
/// where that is a blank alone, it must be an option: `--token x`.
pub(super) fn is_named(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(name.len());
    let (word, behind) = name.split_at(end);
    let is_about = NAMED_ABOUT.iter().any(|about| word.ends_with(about));
    let is_said = behind.is_empty() || !behind.trim().is_empty() || word.starts_with('-');
    is_said && !is_about && NAMED_OTHERWISE.iter().all(|other| !word.contains(other))
}

/// Whether a word was made by chance, as keys and tokens are: it has no place of a file, and letters and digits take turns, or it has a
/// digit and every second character is of another kind than the one before it. In names of several words, such as `UserTokenStore1`,
/// large and small letters take turns less often.
pub(super) fn is_random(word: &str) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_~.-".contains(byte);
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => Some('0'),
        b'A'..=b'Z' => Some('A'),
        b'a'..=b'z' => Some('a'),
        _ => None,
    };
    let pairs = || word.as_bytes().windows(2).filter_map(|pair| Some((kind(&pair[0])?, kind(&pair[1])?)));
    let turns = pairs().filter(|(one, other)| (*one == '0') != (*other == '0')).count();
    let changes = pairs().filter(|(one, other)| one != other).count();
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    word.len() >= RANDOM_CHARS_MIN
        && !word.starts_with(['/', '.', '~'])
        && word.as_bytes().iter().all(is_text)
        && (turns >= TURNS_MIN || (has_digit && 2 * changes >= word.len()))
}
