//! What is a secret, and what is none.

mod named;

use super::*;

fn check(text: &str, expected: &str) {
    let redactor = Redactor::new([
        ("MY_API_KEY".to_owned(), "hunter2hunter2".to_owned()),
        ("HOME".to_owned(), "/home/somebody".to_owned()),
        ("SHORT_TOKEN".to_owned(), "abc".to_owned()),
    ]);
    let mut redacted = text.to_owned();
    redactor.redact(&mut redacted);
    assert_eq!(redacted, expected);
}

#[test]
fn values_made_by_chance_are_told_from_names() {
    for value in ["Zk3uPq81LmNs02Xb", "DP6hrWBhQxZkLmNoPqRsTuVwXyAzH", "aB3dEfGhIjKlMnOpQr"] {
        assert!(shapes::is_random(value), "{value}");
    }
    for name in ["UserAccessTokenProvider1", "mySecretKeyName1", "get_token_from_store_2", "src/auth/Token2Store.rs"] {
        assert!(!shapes::is_random(name), "{name}");
    }
    check("Authorization: Bearer DP6hrWBhQxZkLmNoPqRsTuVwXyAzH", "Authorization: Bearer [redacted]");
}

#[test]
fn the_cookie_of_a_login_is_a_secret() {
    let secret = "0123456789abcdef".repeat(4);
    for name in ["toolhost-7420", "__Host-toolhost"] {
        check(&format!("{name}={secret}; theme=dark"), &format!("{name}=[redacted]; theme=dark"));
    }
}

#[test]
fn a_link_that_signs_somebody_in_is_a_secret_behind_any_host() {
    let secret = "0123456789abcdef".repeat(4);
    for before in ["http://127.0.0.1:7420", "https://toolhost.example", "see "] {
        check(&format!("{before}/login/{secret} once"), &format!("{before}/login/[redacted] once"));
    }
    check("/login/openid", "/login/openid");
}

#[test]
fn a_password_in_an_address_is_taken_out_and_what_stands_for_one_is_not() {
    check("postgres://ada:hunter2!@db:5432/x", "postgres://ada:[redacted]@db:5432/x");
    check("git clone https://x:tok%40en1@h/a https://h/b", "git clone https://x:[redacted]@h/a https://h/b");
    check("(redis://:s3cr3t@h)", "(redis://:[redacted]@h)");
    check("\"amqp://a:b:c@d@h\"", "\"amqp://a:[redacted]@h\"");
    for kept in [
        "https://ada@h/x",
        "https://h:8080/a@b:c",
        "postgres://postgres:postgres@localhost/x",
        "postgres://user:password@localhost/x",
        "https://$USER:$PASSWORD@h",
        "https://user:<token>@h",
        "https://user:${TOKEN}@h",
        "https://user:****@h",
        "https://h?next=http://a:b and c@d",
        "see ://",
    ] {
        check(kept, kept);
    }
    // Bytes beyond the part that is looked at may begin inside a character.
    let long = format!("https://{}@h", "ä".repeat(600));
    check(&long, &long);
}

#[test]
fn secrets_are_taken_out_and_the_rest_is_left() {
    check("key sk_live_abcdefgh12345678ijkl.", "key [redacted].");
    check("rk_test_abcdefgh12345678ijkl", "[redacted]");
    check("task_live_abcdefgh12345678ijkl", "task_live_abcdefgh12345678ijkl");
    check("hf_abcdefghijklmnopqrstuvwxyz01234567", "[redacted]");
    check("plain text, abc, /home/somebody", "plain text, abc, /home/somebody");
    check("the value hunter2hunter2 here", "the value [redacted] here");
    check("key sk-abcdefghijklmnop1234 end", "key [redacted] end");
    check("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted]");
    check("export DB_PASSWORD='correct horse'", "export DB_PASSWORD='correct horse'");
    check("export DB_PASSWORD=correcthorse", "export DB_PASSWORD=[redacted]");
}

#[test]
fn a_secret_with_unseen_characters_inside_is_taken_out_whole() {
    check("\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[KabcdefGHIJ0123456789xyz end", "\x1b[01;31m\x1b[K[redacted] end");
    for unseen in [
        "\0",
        "\x1b[31m",
        "\u{200b}",
        "\u{202e}",
        "\u{fffd}",
        "\u{ad}",
        "\x08",
        "\x1b",
        "\x1b(B",
        "\x1b(B\x1b[m",
        "\x1b]8;;x\x07",
        "\x1b]0;x\x1b\\",
        "\u{9b}31m",
        "\x1bc",
        "\x1bPx\x1b\\",
        "\x1b_x\x1b\\",
        "x\x08",
        "ÿ",
        "í\u{a0}",
        "Ã",
        "\x1b[",
    ] {
        // Wherever it stands.
        for at in 1.."ghp_abcdefGHIJ0123456789xyz".len() {
            let (begin, end) = "ghp_abcdefGHIJ0123456789xyz".split_at(at);
            check(&format!("a {begin}{unseen}{end}, b"), "a [redacted], b");
        }
        check(&format!("a ghp_abcdef{unseen}GHIJ0123456789xyz, b"), "a [redacted], b");
        check(&format!("a hunter2{unseen}hunter2 b{unseen}"), &format!("a [redacted] b{unseen}"));
        check(&format!("https://x:tok{unseen}en77@h"), "https://x:[redacted]@h");
    }
    // After a carriage return a line may begin: that there is something is not hidden.
    check("a ghp_abcdef\rGHIJ0123456789xyz b", "a [redacted]\r[redacted] b");
    check("a\r\nghp_abcdefGHIJ0123456789xyz\r\nb", "a\r\n[redacted]\r\nb");
    // Inside a title of the terminal.
    check("\x1b]0;ghp_abcdef\0GHIJ0123456789xyz\x07 b", "\x1b]0;[redacted]\x07 b");
    let every_letter = "ghp_abcdefGHIJ0123456789xyz".split("").collect::<Vec<_>>().join("\0");
    check(&every_letter, "\0[redacted]\0");
}

#[test]
fn what_a_cut_has_left_of_a_value_is_taken_out() {
    check("MY=hunter2hunte", "MY=[redacted]");
    check("unter2hunter2 and more", "[redacted] and more");
    check("hunter2h", "[redacted]");
    for kept in ["MY=hunter2", "hunter2hun and more", "a unter2hunter", "nter2hu"] {
        check(kept, kept);
    }
}

#[test]
fn of_a_private_key_its_lines_are_taken_out_and_nothing_else() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    let key = format!("a {begin}\n{line}\n{line}\nabc=\n{end} b");
    let hidden = format!("a {begin}\n[redacted]\n[redacted]\n[redacted]\n{end} b");
    check(&key, &hidden);
    check(&Value::from(key.as_str()).to_string(), &Value::from(hidden.as_str()).to_string());
    check(&format!("{begin}\r\n{line}\r\n"), &format!("{begin}\r\n[redacted]\r\n"));
    check(&format!("KEY='{begin} {line} {line} {end}'"), &format!("KEY='{begin} [redacted] [redacted] {end}'"));
    let fields = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF";
    let body = "xyz0123456789012345678901234567890123456789";
    check(&format!("{begin}\n{fields}\n\n{body}\n"), &format!("{begin}\n{fields}\n\n[redacted]\n"));
    // What only stands between the marks is no key, and what stands beside one is none of it.
    for between in [
        "\ntouch PWNED\n",
        "\nmake\n",
        "\n/tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        "\nProc-Type: 4,CLEAR\nxyz0123456789012345678901234567890123456789\n",
        "\nDEK-Info: $(touch PWNED)\n",
    ] {
        let text = format!("echo '{begin}'{between}echo '{end}'");
        check(&text, &text);
    }
    check(&format!("{begin}\n{line}\nmake; x\n{end}"), &format!("{begin}\n[redacted]\nmake; x\n{end}"));
    check(&format!("{begin}\n{line};make\n{end}"), &format!("{begin}\n[redacted];make\n{end}"));
}

#[test]
fn of_a_private_key_whose_beginning_was_cut_off_the_rest_is_taken_out() {
    let line = "IEpAIBAAKCAQEAx7Qm2Zx9Kq2Lm8Vb4Nc7Ws1Er5Ty6Ui3Op0AsMIIEpAIBaaaZ";
    check(
        &format!("of a line/+{line}\n{line}\n  {line}\nshort==\n-----END RSA PRIVATE KEY-----\nafter\n"),
        &format!("of a line/+{line}\n[redacted]\n  [redacted]\n[redacted]\n-----END RSA PRIVATE KEY-----\nafter\n"),
    );
    check(
        &format!("{}\n{line}\n-----END PRIVATE KEY-----", &line[50..]),
        "[redacted]\n[redacted]\n-----END PRIVATE KEY-----",
    );
    check("words\n-----END PRIVATE KEY-----", "words\n-----END PRIVATE KEY-----");
}

#[test]
fn the_lines_of_a_private_key_are_found_behind_what_a_tool_writes_before_each() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let next = "+b3BlbnNz7aC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB";
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    for leads in [
        ["+", "+", "+", "+", "+"],
        ["> ", "> ", "> ", "> ", "> "],
        ["     8\t", "     9\t", "    10\t", "    11\t", "    12\t"],
        ["a/id.pem:1:", "a/id.pem-2-", "a/id.pem-3-", "a/id.pem-4-", "a/id.pem-5-"],
        [" # ", " # ", " # ", " # ", " # "],
        [
            "3fb21c (Ada 2026 1) ",
            "3fb21c (Ada 2026 2) ",
            "3fb21d (Ada 2026 3) ",
            "^77 (Ada 2026 4) ",
            "0 (Ada 2026 5) ",
        ],
    ] {
        let told = |parts: [&str; 5]| {
            leads.iter().zip(parts).fold(String::from("first\n"), |text, (lead, part)| text + lead + part + "\n")
        };
        let (key, hidden) = (told([begin, line, next, "abc=", end]), told([begin, REDACTED, REDACTED, REDACTED, end]));
        if !leads[3].starts_with('^') {
            check(&key, &hidden);
            check(&Value::from(key.as_str()).to_string(), &Value::from(hidden.as_str()).to_string());
        }
        let mut redacted = key;
        Redactor::default().redact(&mut redacted);
        assert!(!redacted.contains(line) && !redacted.contains(next), "{redacted}");
    }
}

#[test]
fn a_private_key_in_source_is_found_behind_the_numbers_of_a_search() {
    let line = format!("MIIEv{}", "Qk1".repeat(20));
    for number in [
        |n: usize| format!("{n}:"),
        |n| format!("src/a.py:{n}:"),
        |n| format!("src/a.py-{n}-"),
        |n| format!("{n:6}\t"),
        |n| format!("src/a.py:{n}:1: "),
    ] {
        for opening in ["KEY = \"\"\"", "K2=\"", ""] {
            let text = [
                format!("{opening}-----BEGIN PRIVATE KEY-----"),
                line.clone(),
                line.clone(),
                "Zz9=".to_owned(),
                "-----END".to_owned(),
            ];
            let mut shown: String =
                text.iter().enumerate().map(|(n, line)| format!("{}{line}\n", number(n + 3))).collect();
            Redactor::default().redact(&mut shown);
            assert!(!shown.contains("Qk1") && !shown.contains("Zz9"), "{shown}");
            assert!(shown.contains(&number(4)) && shown.ends_with("-----END\n"), "{shown}");
        }
    }
}

#[test]
fn of_a_private_key_of_pgp_its_lines_are_taken_out() {
    let line = "lQOYBGZx1yABCADGqk3Q8r9t2Yw5v0nq6bT1m7u4x8c9z0a1b2c3d4e5f6g7h8i9";
    let (begin, end) = ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----");
    check(
        &format!("{begin}\nComment: of Ada\n\n{line}\n{line}\nabcd1234\n=njUN\n{end}\n"),
        &format!("{begin}\nComment: of Ada\n\n{REDACTED}\n{REDACTED}\n{REDACTED}\n{REDACTED}\n{end}\n"),
    );
    let public = format!("{}\n\n{line}\n{}", begin.replace("PRIVATE", "PUBLIC"), end.replace("PRIVATE", "PUBLIC"));
    check(&public, &public);
}

#[test]
fn a_patch_that_takes_one_key_out_and_brings_another_shows_neither() {
    let line = |first: &str, c: &str| format!("{first}{}", c.repeat(60));
    let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
    let (old, new) = (
        [line("MIIE", "a"), line("xyzt", "a"), "old=".to_owned()],
        [line("MIIE", "b"), line("+yzt", "b"), "new".to_owned()],
    );
    for (color, end_of) in [("", ""), ("\u{1b}[31m", "\u{1b}[m")] {
        let signed = |sign: &str, lines: &[String]| {
            lines.iter().map(|line| format!("{color}{sign}{end_of}{color}{line}{end_of}\n")).collect::<String>()
        };
        let patch = format!(" {begin}\n{}{} {end}\n", signed("-", &old), signed("+", &new));
        let mut redacted = patch;
        Redactor::default().redact(&mut redacted);
        for part in ["aaa", "bbb", "old", "new"] {
            assert!(!redacted.contains(part), "{redacted}");
        }
        assert_eq!((redacted.matches(REDACTED).count(), redacted.lines().count()), (6, 8), "{redacted}");
        assert!(redacted.contains(end), "{redacted}");
    }
}

#[test]
fn a_foreign_line_in_a_private_key_is_shown_and_the_rest_is_not() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    check(
        &format!("{begin}\n{line}\nreboot now\n{line}\nshort=\n{end}\n{line}"),
        &format!("{begin}\n{REDACTED}\nreboot now\n{REDACTED}\n{REDACTED}\n{end}\n{line}"),
    );
    // A text may have many marks, so the search for more of a key ends.
    for (others, is_found) in [(64, true), (65, false)] {
        let mut text = format!("{begin}\n{line}\n{}{line}\n", "not of a key\n".repeat(others));
        Redactor::default().redact(&mut text);
        assert_eq!(!text.contains(line), is_found, "{others} other lines");
    }
    // Empty lines have what stands before each line, too.
    let (pgp, body) =
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", "lQOYBGZx1yABCADGqk3Q8r9t2Yw5v0nq6bT1m7u4x8c9z0a1b2c3d4e5f6g7h8i9");
    let key = format!("{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\nxyz{line}\n{end}");
    for text in [format!("{pgp}\n\n{body}\n{body}\n=njUN\n-----END PGP PRIVATE KEY BLOCK-----"), key] {
        for lead in ["+", "-", "> ", "p.asc:@:", "@:", "    @\t", "  "] {
            let lines = text
                .lines()
                .enumerate()
                .map(|(n, line)| format!("{}{line}\n", lead.replace('@', &(n + 8).to_string())));
            let mut shown: String = lines.collect();
            Redactor::default().redact(&mut shown);
            assert!(!shown.contains(body) && !shown.contains(line), "{lead:?}: {shown}");
        }
    }
}

#[test]
fn a_secret_is_found_behind_what_only_looks_like_a_letter() {
    let token = "ghp_0123456789abcdef0123456789abcdef0123";
    for before in ["%3D", "%20", "\\u003d", "\\x20", "\u{1b}[31m", "\u{1b}[", "_", "of_"] {
        check(&format!("{before}{token}"), &format!("{before}[redacted]"));
    }
}

#[test]
fn a_random_value_is_found_in_the_ways_in_which_names_and_values_are_written() {
    let value = "a1B2c3D4e5F6a7B8c9D0e1";
    for (before, after) in [
        ("let api_key: &str = \"", "\";"),
        ("const token: string = \"", "\";"),
        ("let key: &'static str = env; API_TOKEN: str = \"", "\""),
        ("os.environ[\"api_token\"] = \"", "\""),
        ("define('api_token', '", "');"),
        ("<password>", "</password>"),
        ("<add key=\"ApiToken\" value=\"", "\"/>"),
        ("- name: api_token\n  value: ", "\n"),
        ("tokens: [\"", "\"]"),
        ("GET /x?access_token%3D", " HTTP/1.1"),
        ("api_key ?= ", "\n"),
        ("encryption_key: ", "\n"),
    ] {
        check(&format!("{before}{value}{after}"), &format!("{before}[redacted]{after}"));
    }
    for kept in [
        format!("secretName: my-app-secret-{value}"),
        format!("token_id: {value}"),
        format!("\"dataTokenId\": \"{value}\""),
        format!("the token {value} was pushed"),
        format!("private_key_file = \"{value}\""),
    ] {
        check(&kept, &kept);
    }
}

#[test]
fn tokens_of_well_known_issuers_are_taken_out() {
    let made = |chars: usize| "a1B2c3D4e5F6a7B8c9D0".chars().cycle().take(chars).collect::<String>();
    let hex = |chars: usize| made(chars).to_ascii_lowercase();
    let large = |chars: usize| made(chars).to_ascii_uppercase();
    for secret in [
        format!("glrt-{}", made(20)),
        format!("ATATT3{}", made(40)),
        format!("ya29.{}", made(40)),
        format!("GOCSPX-{}", made(28)),
        format!("dop_v1_{}", hex(64)),
        format!("dapi{}", hex(32)),
        format!("{}.atlasv1.{}", made(14), made(60)),
        format!("hvs.{}", made(24)),
        format!("pypi-AgEIcHlwaS5vcmc{}", made(60)),
        format!("dckr_pat_{}", made(27)),
        format!("gsk_{}", made(52)),
        format!("whsec_{}", made(32)),
        format!("shpat_{}", hex(32)),
        format!("SG.{}.{}", made(22), made(43)),
        format!("key-{}", hex(32)),
        format!("xoxp-1-{}", made(40)),
        format!("xapp-1-A{}", large(40)),
        format!("123456789:AA{}", made(33)),
        format!("lin_api_{}", made(40)),
        format!("glsa_{}_{}", made(32), hex(8)),
        format!("sntrys_{}", made(60)),
        format!("ops_eyJ{}", made(60)),
        format!("AGE-SECRET-KEY-1{}", large(58)),
    ] {
        check(&format!("use {secret} here"), "use [redacted] here");
        check(&format!("use x{secret} here"), &format!("use x{secret} here"));
    }
    let hook = format!("https://hooks.slack.com/services/T0123/B0123/{}", made(24));
    check(&hook, "https://hooks.slack.com/services/T0123/B0123/[redacted]");
    let hook = format!("https://discord.com/api/webhooks/123/{}", made(68));
    check(&hook, "https://discord.com/api/webhooks/123/[redacted]");
    let azure = format!("AccountName=a;AccountKey={}==;EndpointSuffix=core", made(86));
    check(&azure, "AccountName=a;AccountKey=[redacted];EndpointSuffix=core");
}

#[test]
fn tokens_of_less_known_issuers_are_taken_out() {
    let hex = "0123456789abcdef".repeat(4);
    let mixed = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3Ab4Cd5Ef6Gh7Ij8Kl9Mn0".to_owned();
    let lower = mixed.to_ascii_lowercase();
    for token in [
        format!("1//0{}", &mixed[..45]),
        format!("ab~8Q~{}", &mixed[..33]),
        format!("dp.st.prd.{}", &mixed[..43]),
        format!("tskey-auth-{}-{}", &mixed[..12], &mixed[..32]),
        format!("sbp_{}", &hex[..40]),
        format!("sb_secret_{}", &mixed[..31]),
        format!("pscale_tkn_{}", &mixed[..43]),
        format!("napi_{}", &lower[..60]),
        format!("nfp_{}", &mixed[..36]),
        format!("rnd_{}", &mixed[..28]),
        format!("LTAI{}", &mixed[..20]),
        format!("dt0c01.{}.{}", &hex[..24].to_ascii_uppercase(), hex.to_ascii_uppercase()),
        format!("oy2{}", &lower[..43]),
        format!("CLOJARS_{}", &lower[..60]),
        format!("CCIPAT_{}_{}", &mixed[..22], &hex[..40]),
        format!("CCIPRJ_{}_{}", &mixed[..22], &hex[..40]),
        format!("bkua_{}", &hex[..40]),
        format!("sgp_{}_{}", &hex[..16], &hex[..40]),
        format!("squ_{}", &hex[..40]),
        format!("lsv2_pt_{}_{}", &hex[..32], &hex[..10]),
        format!("tvly-{}", &mixed[..32]),
        format!("csk-{}", &lower[..48]),
        format!("pcsk_{}", &mixed[..60]),
        format!("jina_{}", &mixed[..60]),
        format!("secret_{}", &mixed[..43]),
        format!("{}-us12", &hex[..32]),
        format!("xkeysib-{hex}-{}", &mixed[..16]),
        format!("pat-na1-{}-0123-4567-89ab-{}", &hex[..8], &hex[..12]),
        format!("CFPAT-{}", &mixed[..43]),
        format!("sk.eyJ{}.{}", &mixed[..40], &mixed[..22]),
        format!("access_token$production${}${}", &lower[..16], &hex[..32]),
        format!("FLWSECK_TEST-{}-X", &hex[..32]),
        format!("EZAK{}", &mixed[..54]),
    ] {
        check(&format!("use {token} now"), "use [redacted] now");
    }
    check(
        &format!("https://a.blob.core.windows.net/c?sv=2&sig={}%3D", &mixed[..44]),
        "https://a.blob.core.windows.net/c?sv=2&sig=[redacted]",
    );
    check(&format!("SSWS 00{}", &mixed[..40]), "SSWS [redacted]");
}

#[test]
fn secrets_of_configuration_files_are_taken_out() {
    let random = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3A";
    let encoded = format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV{}", "QUJD".repeat(60));
    for (text, redacted) in [
        (format!("client-key-data: {encoded}=="), "client-key-data: [redacted]"),
        (
            format!("tls.key: {encoded}\ntls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"),
            "tls.key: [redacted]\ntls.crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
        ),
        (r#"{"auths":{"h":{"auth":"YWRhOmh1bnRlcjIh"}}}"#.to_owned(), r#"{"auths":{"h":{"auth":"[redacted]"}}}"#),
        ("//registry.example/:_auth=YWRhOmh1bnRlcjIh".to_owned(), "//registry.example/:_auth=[redacted]"),
        (format!("SECRET = b\"{random}\""), "SECRET = b\"[redacted]\""),
        (format!("TOKEN = \"\"\"{random}\"\"\""), "TOKEN = \"\"\"[redacted]\"\"\""),
        (format!("secret: !!str {random}"), "secret: !!str [redacted]"),
        (format!("ENV API_TOKEN {random}"), "ENV API_TOKEN [redacted]"),
        (format!("PresharedKey = {random}="), "PresharedKey = [redacted]"),
        (format!("hmac_key: {random}"), "hmac_key: [redacted]"),
        (format!("client.setToken(\"{random}\");"), "client.setToken(\"[redacted]\");"),
        (format!("Set-Cookie: session={random}; Path=/"), "Set-Cookie: session=[redacted]; Path=/"),
        (
            format!("Private-Lines: 2\n{}\n{random}==\nPrivate-MAC: 0", "aB3d".repeat(16)),
            "Private-Lines: 2\n[redacted]\nPrivate-MAC: 0",
        ),
        (
            format!(r#"{{"kty":"EC","x":"{random}","d":"{random}"}}"#),
            &format!(r#"{{"kty":"EC","x":"{random}","d":"[redacted]"}}"#),
        ),
        (
            "tokens_sha = \"1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b\"".to_owned(),
            "tokens_sha = \"1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b\"",
        ),
        ("ENV PATH /usr/local/bin:/usr/bin".to_owned(), "ENV PATH /usr/local/bin:/usr/bin"),
    ] {
        check(&text, redacted);
    }
}

#[test]
fn passwords_are_found_where_programs_take_them() {
    check("db.example:5432:shop:ada:hunter2!", "db.example:5432:shop:ada:[redacted]");
    check("*:*:*:ada:hunter2!", "*:*:*:ada:[redacted]");
    check("curl -fsS -u ada:hunter2! https://h/x", "curl -fsS -u ada:[redacted] https://h/x");
    check("curl --user 'ada:hunter2!' https://h/x", "curl --user 'ada:[redacted]' https://h/x");
    check("curl -u $USER:$PASSWORD https://h/x", "curl -u $USER:$PASSWORD https://h/x");
    check("curl -u ada https://h:8080/users", "curl -u ada https://h:8080/users");
    check("password: |\n  a1b2c3d4e5f6g7h8i9\n", "password: |\n  [redacted]\n");
    check("| token | a1b2c3d4e5f6g7h8i9 |", "| token | [redacted] |");
    check("| token | what a parser reads first |", "| token | what a parser reads first |");
}

#[test]
fn a_private_key_in_the_source_of_a_program_is_taken_out() {
    let line = format!("MIIEv{}", "Qk1".repeat(20));
    let last = "Zz9=";
    for (joined, redacted) in [
        (
            format!(
                "a = \"-----BEGIN PRIVATE KEY-----\\n\" +\n  \"{line}\\n\" +\n  \"{line}\\n\" +\n  \"{last}\\n\" +\n \"-----END"
            ),
            3,
        ),
        (format!("a = '-----BEGIN PRIVATE KEY-----'\n    '{line}'\n    '{line}'\n    '{last}'\n    '-----END"), 3),
        (format!("[\"-----BEGIN PRIVATE KEY-----\", \"{line}\", \"{line}\", \"-----END"), 2),
        (format!("a = \"-----BEGIN PRIVATE KEY-----\\n\" \\\n  \"{line}\\n\" \\\n  \"{line}\\n\" \\\n \"-----END"), 2),
    ] {
        let mut text = joined.clone();
        Redactor::default().redact(&mut text);
        assert!(!text.contains("Qk1") && !text.contains(last), "{text}");
        assert_eq!(text.matches("[redacted]").count(), redacted, "{text}");
        // The same text inside JSON.
        let mut quoted = serde_json::to_string(&joined).unwrap_or_default();
        Redactor::default().redact(&mut quoted);
        assert!(!quoted.contains("Qk1") && !quoted.contains(last), "{quoted}");
    }
}

#[test]
fn what_is_sent_to_say_who_asks_is_taken_out() {
    check("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [redacted]");
    check("-H 'authorization: token a1b2c3d4e5f6'", "-H 'authorization: token [redacted]'");
    check(r#"{\"Authorization\": \"a1b2c3d4e5f6\"}"#, r#"{\"Authorization\": \"[redacted]\"}"#);
    for kept in ["Authorization: required for all", "authorization: oauth-of-the-server", "Basic training of a model"] {
        check(kept, kept);
    }
}

#[test]
fn a_random_value_beside_a_telling_name_is_taken_out() {
    let value = "a1B2c3D4e5F6a7B8c9";
    for (before, after) in [
        ("token = \"", "\""),
        ("api_key: '", "'"),
        ("\"clientSecret\": \"", "\","),
        (r#"{\"accessKey\":\""#, r#"\"}"#),
        ("aws_secret_access_key = ", "\n"),
        ("curl --token ", " https://h"),
        ("let password := \"", "\""),
    ] {
        check(&format!("{before}{value}{after}"), &format!("{before}[redacted]{after}"));
    }
    for kept in [
        "\"nextPageToken\": \"a1B2c3D4e5F6a7B8c9\"",
        "token_file = \"/run/a1B2c3D4e5F6a7B8c9\"",
        "secret: my-secret-of-2026-in-the-vault",
        "password = \"correcthorsebatterystaple\"",
        "sha = \"a1b2c3d4e5f6a7b8c9d0\"",
        "the tokenizer is \"a1B2c3D4e5F6a7B8c9\"",
        "passwordHash: a1B2c3D4e5F6a7B8c9",
        "token a1B2c3D4",
    ] {
        check(kept, kept);
    }
    let mut data = serde_json::json!({"apiKey": value, "sha": value, "nextToken": value, "token": "see below", "a": {"secret": value}});
    Redactor::default().redact_json(&mut data);
    let is = serde_json::json!({"apiKey": REDACTED, "sha": value, "nextToken": value, "token": "see below", "a": {"secret": REDACTED}});
    assert_eq!(data, is);
}

#[test]
fn a_string_is_searched_unless_it_is_the_text_that_was() {
    let redactor = Redactor::default();
    let (mut text, data) =
        ("API_TOKEN=a1b2c3d4e5".to_owned(), serde_json::json!({"whole": "API_TOKEN=a1b2c3d4e5", "clean": "as said"}));
    redactor.redact(&mut text);
    for beside in [text.as_str(), "as said", ""] {
        let mut data = data.clone();
        redactor.redact_json_beside(&mut data, beside);
        assert_eq!(data, serde_json::json!({"whole": "API_TOKEN=[redacted]", "clean": "as said"}), "beside `{beside}`");
    }
}

#[test]
fn no_command_is_hidden_behind_a_secret() {
    for (text, shown) in [
        ("git ls-remote https://bob:Zx8kQ;make;@github.com/x", "git ls-remote https://bob:Zx8kQ;make;@github.com/x"),
        ("API_TOKEN=a1b2c3d4e5;make;x", "API_TOKEN=[redacted];make;x"),
        ("API_TOKEN=a1b2c3d4e5`make`", "API_TOKEN=[redacted]`make`"),
        ("curl -H 'Bearer a1b2c3d4e5f6a7b8c9'|sh", "curl -H 'Bearer [redacted]'|sh"),
    ] {
        check(text, shown);
    }
}

#[test]
fn words_and_names_that_only_look_like_secrets_are_left() {
    for text in [
        ".sk-fading-circle-container { }",
        "use sk-learn-contrib-imbalanced",
        "use sk-learn-pipeline-v2-final-version-for-production",
        "Bearer authentication-scheme-documentation",
    ] {
        check(text, text);
    }
    let redactor = |name: &str, value: &str| Redactor::new([(name.to_owned(), value.to_owned())]);
    for (name, value) in [
        ("DB_PASS", "development"),
        ("API_KEY_HEADER", "X-Authorization1"),
        ("PASSWORD_FILE", "/etc/hosts"),
        ("KEYMAP", "german-latin1"),
        ("MONKEY", "chimpanzee1"),
        ("SECRET_NAME", "my-secret-1"),
        ("TOKEN_ENDPOINT", "https://id.example"),
        ("COMPASS", "north-west-1"),
    ] {
        assert!(redactor(name, value).spans(value).is_empty(), "{name}");
    }
    for name in ["GITHUB_TOKEN", "DB_PASS", "OPENAI_APIKEY", "MY_KEY", "MYSECRET", "NPM_AUTH", "GH_PAT", "DATABASE_URL"]
    {
        assert_eq!(redactor(name, "hunter2hunter2").spans("hunter2hunter2").len(), 1, "{name}");
    }
}

#[test]
fn code_that_only_speaks_of_secrets_is_left() {
    check("const TOKEN_LIMIT: usize = 1000;", "const TOKEN_LIMIT: usize = 1000;");
    check("let key = env(\"API_KEY\")?; token.refresh()", "let key = env(\"API_KEY\")?; token.refresh()");
    check("API_KEY=$OTHER_API_KEY", "API_KEY=$OTHER_API_KEY");
}

#[test]
fn json_is_redacted_through_and_through() {
    let redactor = Redactor::new([]);
    let mut value = serde_json::json!({"a": ["sk-abcdefghijklmnop1234"], "sk-abcdefghijklmnop1234": 1, "n": 5});
    redactor.redact_json(&mut value);
    assert_eq!(value, serde_json::json!({"a": ["[redacted]"], "[redacted]": 1, "n": 5}));
}

#[test]
fn a_secret_at_the_start_of_a_line_is_one_in_json_too() {
    let redactor = Redactor::new([]);
    let secrets = [
        "ghp_0123456789abcdef0123456789abcdef0123",
        "sk-ant-abcdefghijklmnop1234",
        "AKIAABCDEFGHIJKLMNOP",
        "xoxb-1234567890-abcdef",
        "glpat-abcdefghijklmnop1234",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
        "DB_PASSWORD=correcthorse",
        "API_KEY=\"correcthorse\"",
    ];
    for secret in secrets {
        for before in ["", "\n", "\t", "a b\r\n", "("] {
            let value = Value::from(format!("{before}{secret}"));
            let hidden = secret.split('=').next_back().unwrap_or_default().trim_matches('"');
            for mut text in [value.to_string(), Value::from(value.to_string()).to_string(), format!("{before}{secret}")]
            {
                redactor.redact(&mut text);
                assert!(!text.contains(hidden), "{text}");
            }
        }
    }
    let mut word = "a risk-abcdefghijklmnop1234".to_owned();
    redactor.redact(&mut word);
    assert_eq!(word, "a risk-abcdefghijklmnop1234");
}

#[test]
fn shapes_that_overlap_are_one_secret() {
    let redactor = Redactor::new([("MY_TOKEN".to_owned(), "sk-abcdefghijklmnop".to_owned())]);
    let text = "API_KEY=sk-abcdefghijklmnop1234 end";
    assert_eq!(redactor.spans(text), vec![8..31]);
    let mut redacted = text.to_owned();
    redactor.redact(&mut redacted);
    assert_eq!(redacted, "API_KEY=[redacted] end");
}

#[test]
fn a_change_beside_a_secret_keeps_it_and_keeps_it_a_secret() {
    let redactor = Redactor::new([]);
    let (key, named) = ("use sk-abcdefghijklmnop1234 here", "DB_PASSWORD=correcthorse");
    assert!(redactor.keeps(key, "do not use sk-abcdefghijklmnop1234 here"));
    assert!(redactor.keeps("correcthorse DB_PASSWORD=correcthorse", "correcthorse. DB_PASSWORD=correcthorse"));
    for (before, after) in [
        (key, "use xsk-abcdefghijklmnop1234 here"),
        (key, "use sk-abcdefghijklmnop1234x here"),
        (key, "use it here"),
        (named, "DB_NAME=correcthorse"),
        (named, "DB_PASSWORD=a.correcthorse"),
        (named, "correcthorse DB_PASSWORD=correcthorse"),
    ] {
        assert!(!redactor.keeps(before, after), "{after}");
    }
}

#[test]
fn values_beside_a_telling_name_are_suspects_and_code_about_them_is_not() {
    let redactor = Redactor::new([]);
    let suspects = |text: &str| redactor.suspects(text).into_iter().collect::<Vec<_>>();
    assert_eq!(suspects("password: hunter22hunter"), ["hunter22hunter"]);
    let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    assert_eq!(suspects(&format!("aws_secret_access_key = {aws}")), [aws]);
    assert_eq!(suspects("\"apiKey\": \"a1b2c3d4e5\""), ["a1b2c3d4e5"]);
    assert_eq!(suspects("API_KEY=sk-abcdefghijklmnop1234"), ["sk-abcdefghijklmnop1234"]);
    for fine in [
        "ask for the password: it is in the vault",
        "token: $TOKEN_2",
        "secret: {{secret_1}}",
        "token_url: https://id.example/v2",
        "max_tokens: 20000000",
    ] {
        assert_eq!(suspects(fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_mark_is_not_written_over_a_secret_wherever_else_one_stands() {
    let secret = format!("ghp_{}", "a1B2c3D4".repeat(5));
    let before = format!("Write {REDACTED} for names.\ntoken {secret}\n");
    let over = format!("Write it for names.\ntoken {REDACTED}\n");
    assert!(masks_secret(&before, &over));
    assert!(masks_secret("token x\n", &over), "a mark more");
    for like in [
        "***",
        "[REDACTED]",
        "<redacted>",
        "[secret]",
        "xxxxxxxx",
        "ghp_...",
        "•••",
        "xxxx",
        "<token>",
        "<API_KEY>",
        "your-token-here",
    ] {
        assert!(masks_secret(&before, &before.replace(&secret, like)), "{like}");
    }
    for named in ["$GITHUB_TOKEN", "{{GITHUB_TOKEN}}", "from the vault ..."] {
        assert!(!masks_secret(&before, &before.replace(&secret, named)), "{named}");
    }
    assert!(!masks_secret("token x\n", "token ***\n"), "no secret was there");
    for fine in [format!("Write {REDACTED} for names.\ntoken\n"), before.replace("for names", "for each name")] {
        assert!(!masks_secret(&before, &fine), "{fine}");
    }
}

#[test]
fn texts_of_nothing_but_commands_cost_little() {
    // Each begins one that never ends; a search to the end of the text for each would take minutes.
    for begins in ["\x1b]", "\x1b[", "\x1bP0", "x\x08", "\u{9d}", "aÿ", "ghp_\0", "\x1b(("] {
        check(&begins.repeat(200_000), &begins.repeat(200_000));
    }
}
