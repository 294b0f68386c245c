//! Short values beside the name of a password or of another secret.

use serde_json::json;

use super::check;
use crate::outcome::REDACTED;
use crate::redact::Redactor;

#[test]
fn a_short_password_beside_its_name_is_a_secret() {
    for (before, secret, after) in [
        ("password=", "12345678", ""),
        ("password=", "Tr0ub4dor&3", "\n"),
        ("password: ", "8nZQrbpRiKgCPE", " and more"),
        ("\"password\": \"", "1jQh0WT43Z3gFT", "\","),
        ("the password is ", "hunter2", "."),
        ("**password**: ", "hunter2!", ""),
        ("db_passwd = '", "abc123", "'"),
        ("the password was: ", "hunter2", ""),
        ("mysql --password ", "12345678", " -h db"),
        ("| password | ", "hunter2pw9", " |"),
        ("password：", "12345678", ""),
        ("pwd=", "hunter2hunter", ""),
        ("user: ada, pass: ", "hunter2", ""),
        ("&#34;password&#34;: &#34;", "Zx7&#60", ";Mike77&#34;"),
        ("das Passwort ist ", "Sommer2024", ""),
        ("Kennwort: ", "Sommer2024", ""),
        ("le mot de passe est ", "soleil99", " ici"),
        ("la contraseña es: ", "sol2024", ""),
        ("senha = ", "verao2024", ""),
        ("密码：", "xiatian2024", ""),
        ("heslo: ", "Leto2024x", ""),
        ("Lösenord: ", "sommar24x", ""),
        ("şifre: ", "yaz2024", ""),
        ("كلمة المرور: ", "sayf2024", ""),
        ("the password for bob@h: ", "hunter2", ""),
        ("password - ", "hunter2", ""),
        ("password → ", "hunter2", ""),
        ("<b>password</b>: ", "hunter2", ""),
        ("mysql -u root -p", "hunter2", " db"),
        ("Password (test server): ", "hunter2", ""),
        ("{\"name\": \"DB_PASSWORD\", \"value\": \"", "hunter2", "\"}"),
        ("- name: DB_PASSWORD\n  value: ", "hunter2", "\n"),
    ] {
        // A full stop may belong to a password or end the sentence.
        let after_kept = if after == "." { "" } else { after };
        check(&format!("{before}{secret}{after}"), &format!("{before}[redacted]{after_kept}"));
    }
    for text in [
        "password: String",
        "password: &str = read_line()?",
        "password = sha256(input1)",
        "password: argon2id",
        "password_min: 123456",
        "password = inputs1[0]",
        "the password is wrong",
        "PWD=/home/ada1/src",
        "password: ${PASSWORD}",
        "pass: 12.345s, fail: 0",
        "bypass: route66x",
        "compass=north4711",
        "password, a value: none",
        "- name: PORT\n  value: 123456",
    ] {
        check(text, text);
    }
}

#[test]
fn a_short_value_beside_the_name_of_a_secret_is_one_and_a_name_is_none() {
    for (before, secret, after) in [
        ("client_secret: ", "Zx9Kilo7", ""),
        ("client_secret='", "q7w8e9r0", "'"),
        ("\"access_token\": \"", "a1b2c3d4", "\","),
        ("the secret is ", "Kilo77Mike", " now"),
        ("api-key: ", "abc123def", ""),
        ("api key = ", "abc123def", ""),
        ("secret_key = \"", "ZEletmein99", "\""),
        ("token = \"", "letmein99", "\""),
        (r#"\"access_token\" : \""#, "ZDaaaabbbbcccc1", r#"\""#),
        ("client_secret=", "letmein99", ""),
        ("privateKey=", "SJaaaabbbbcccc1", ""),
        ("jwt=", "Xk29fLq8Zt4Wm7Rv", ""),
        ("DB_PASS=", "letmein99", ""),
        ("MYSQL_PWD=", "letmein99", ""),
        ("pw: ", "hunter2", ""),
        ("the API key for bob: ", "abc12345", ""),
        ("\"name\":\"CLIENT_SECRET\",\"value\":\"", "Zx9Kilo7", "\""),
        ("Token (staging): ", "a1b2c3d4", ""),
        ("set aws_secret_access_key=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", " here"),
    ] {
        check(&format!("{before}{secret}{after}"), &format!("{before}[redacted]{after}"));
    }
    for text in [
        "secret: my-secret-of-2026",
        "token = TokenV2Impl",
        "token: next_token2",
        "secret = secrets2[0]",
        "token = sha256sum",
        "secret: k8s/secrets.yaml",
        "token: 0x1f2b3c4d",
        "nextToken: a1b2c3d4",
        "tokens: 123456",
        "client_secret: Option<String2>",
        "access_token: oauth2",
        "secret_version: v1beta1",
        "api_token = new_token2()",
        "secretName: db1abc2x",
        "the token was refused at 12:34:56",
    ] {
        check(text, text);
    }
    let variables = |port: &str, secret: &str| json!([{"name": "PORT", "value": port}, {"name": "CLIENT_SECRET", "value": secret}, {"key": "DB_PASSWORD", "value": secret}]);
    let mut env = variables("Zx9Kilo7", "Zx9Kilo7");
    Redactor::default().redact_json(&mut env);
    assert_eq!(env, variables("Zx9Kilo7", REDACTED));
    let mut data = json!({"client_secret": "Zx9Kilo7", "secretName": "db1abc2x", "token": "the first one"});
    Redactor::default().redact_json(&mut data);
    let is = json!({"client_secret": REDACTED, "secretName": "db1abc2x", "token": "the first one"});
    assert_eq!(data, is);
}
