//! Secrets leave by no way: not in an answer, not in an error, not in the audit.

use serde_json::json;

use crate::probes::house;

const KEY: &str = "sk-abcdefghijklmnopqrst1234";
const VALUE: &str = "correct-horse-battery-staple";

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_in_no_answer_and_no_row() {
    let (builder, _) = house();
    let house = builder.host_variable("MY_API_KEY", VALUE).host_variable("HOME", "/home/somebody").build().await;
    let text = format!("key {KEY}, value {VALUE}, home /home/somebody, Bearer abcdefghijklmnop0123");
    for tool in ["probe.echo", "probe.put", "probe.fail"] {
        let outcome = house.call(tool, json!({ "text": text })).await;
        let answer = format!("{} {}", serde_json::to_string(&outcome).unwrap(), outcome.text);
        for secret in [KEY, VALUE, "abcdefghijklmnop0123"] {
            assert!(!answer.contains(secret), "{tool}: {answer}");
        }
        assert!(answer.contains("[redacted]") && answer.contains("/home/somebody"), "{tool}: {answer}");
    }
    let rows = format!("{:?}", house.rows().await);
    for secret in [KEY, VALUE, "abcdefghijklmnop0123"] {
        assert!(!rows.contains(secret), "{rows}");
    }
    assert_eq!(house.workspace.read("made.txt"), text, "what is written is what was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_an_unknown_field_or_tool_name_is_redacted_too() {
    let (builder, _) = house();
    let house = builder.build().await;
    let field = house.call("probe.echo", json!({ "text": "x", KEY: KEY })).await;
    let name = house.call(KEY, json!({})).await;
    let said = format!("{field:?} {name:?} {:?}", house.rows().await);
    assert!(!said.contains(KEY), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_at_the_cut_of_a_long_argument_is_not_half_kept() {
    let (builder, _) = house();
    let house = builder.host_variable("MY_API_KEY", VALUE).build().await;
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n",
        "MIIEowIBAAKCAQEAabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLM\n".repeat(20)
    );
    for secret in [VALUE, KEY, key.as_str()] {
        // The audit keeps so many bytes of a string: the secret lies across that end.
        let limit = toolhost_host::Limits::default().audit_string_bytes;
        let text = format!("{}{secret}{}", ".".repeat(limit - secret.len() * 3 / 4), ".".repeat(limit));
        house.call("probe.put", json!({ "text": text })).await;
        let rows = format!("{:?}", house.rows().await);
        let half = &secret[secret.len() / 4..secret.len() / 2];
        assert!(!rows.contains(half), "part of a secret is in the audit: {half}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_private_key_is_as_secret_as_all_of_it() {
    let (builder, _) = house();
    let house = builder.build().await;
    let line = "MIIEowIBAAKCAQEAabcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLM";
    let head = format!("-----BEGIN PRIVATE KEY-----\n{line}\n{line}\n");
    let outcome = house.call("probe.echo", json!({ "text": head })).await;
    assert!(!outcome.text.contains(line), "{}", outcome.text);
    let code = "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { found(); }";
    assert_eq!(house.call("probe.echo", json!({ "text": code })).await.text, code, "to speak of keys is no secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_argument_is_kept_as_its_head_and_hash() {
    let (builder, _) = house();
    let house = builder.build().await;
    let text = "ä".repeat(100_000);
    assert!(house.call("probe.put", json!({ "text": text })).await.ok);
    let rows = house.rows().await;
    let kept = rows[0]["arguments"]["text"].as_str().unwrap();
    assert!(kept.len() < 5000 && kept.contains("200000 bytes, sha256 "), "{}", kept.len());
}
