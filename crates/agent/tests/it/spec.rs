//! How a person names a model, which key it gets, what it costs.

use toolhost_agent::model::{
    ModelError, ModelSpec, Price, ProviderConfig, ProviderKind, Secret, Usage, WINDOW_DEFAULT, cost, known,
    output_default, parse_model_spec,
};

fn provider(provider: ProviderKind, model: &str, base_url: Option<&str>) -> ModelSpec {
    ModelSpec::Provider { provider, model: model.to_owned(), base_url: base_url.map(ToOwned::to_owned) }
}

#[test]
fn each_form_is_read_and_written_the_same() {
    let file = "a/b.json".to_owned();
    let record = |model| ModelSpec::Record { file: "C:\\tape.jsonl".to_owned(), model: Box::new(model) };
    for (text, expected) in [
        ("anthropic:claude-sonnet-4-5", provider(ProviderKind::Anthropic, "claude-sonnet-4-5", None)),
        ("openai:gpt-5", provider(ProviderKind::OpenAi, "gpt-5", None)),
        (
            "openai:qwen3:8b@http://127.0.0.1:8080/v1",
            provider(ProviderKind::OpenAi, "qwen3:8b", Some("http://127.0.0.1:8080/v1")),
        ),
        ("openai:a@b@https://x.example", provider(ProviderKind::OpenAi, "a@b", Some("https://x.example"))),
        ("ollama:llama3:8b", provider(ProviderKind::Ollama, "llama3:8b", None)),
        ("gemini:gemini-2.5-pro", provider(ProviderKind::Gemini, "gemini-2.5-pro", None)),
        ("script:a/b.json", ModelSpec::Script { file: file.clone() }),
        ("replay:a/b.json", ModelSpec::Replay { file }),
        ("record:C:\\tape.jsonl:openai:gpt-5", record(provider(ProviderKind::OpenAi, "gpt-5", None))),
        ("record:C:\\tape.jsonl:script:x", record(ModelSpec::Script { file: "x".to_owned() })),
    ] {
        let spec = parse_model_spec(text).unwrap();
        assert_eq!(spec, expected, "{text}");
        assert_eq!(spec.to_string(), text);
    }
    let spec = parse_model_spec(" openai:m@http://127.0.0.1:1/v1/ ").unwrap();
    assert_eq!(spec, provider(ProviderKind::OpenAi, "m", Some("http://127.0.0.1:1/v1")));
}

#[test]
fn what_is_none_is_told_what_was_probably_meant() {
    for (text, part) in [
        ("antropic:claude", "perhaps `anthropic:…`"),
        ("OpenAI:gpt-5", "perhaps `openai:…`"),
        ("claude-sonnet-4-5", "perhaps `anthropic:claude-sonnet-4-5`"),
        ("gpt-5", "perhaps `openai:gpt-5`"),
        ("", "begins with one of `anthropic:`"),
        ("mystery:9", "begins with one of `anthropic:`, `openai:`, `gemini:`, `ollama:`, `script:`"),
        ("anthropic:", "names no model: write `anthropic:MODEL`"),
        ("openai:@http://127.0.0.1/v1", "names no model"),
        ("openai:m@http://me:pw@host/v1", "no user and no password"),
        ("openai:m@http://host/v1?key=7", "ends in a query"),
        ("openai:m@http://", "is no address"),
        ("openai:m@http://me:pw@", "is no address"),
        ("script:", "names no file"),
        ("record:tape.jsonl", "is not `record:FILE:MODEL`"),
        ("record:tape.jsonl:opnai:gpt-5", "perhaps `openai:…`"),
        ("record:a:replay:b", "what is recorded is a provider's model or a script"),
        ("record::openai:gpt-5", "names no file"),
    ] {
        let error = parse_model_spec(text).unwrap_err();
        assert!(matches!(error, ModelError::Disabled(_)));
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn an_address_with_a_password_is_refused_without_showing_it() {
    for url in ["http://me:hush@host/v1", "http://me:hush@", "http://me:hush@host:99999"] {
        let config = ProviderConfig::found(ProviderKind::OpenAi, "m", Some(url), None, &|_: &str| None::<Secret>);
        let error = config.unwrap_err().to_string();
        assert!(!error.contains("hush"), "{error}");
    }
}

#[test]
fn a_provider_gets_the_key_of_its_name_and_any_other_server_none() {
    let keys = |name: &str| Some(Secret::new(&format!("key of {name}\n")));
    let none = |_: &str| None::<Secret>;
    for (provider, name) in [
        (ProviderKind::Anthropic, "ANTHROPIC_API_KEY"),
        (ProviderKind::OpenAi, "OPENAI_API_KEY"),
        (ProviderKind::Gemini, "GEMINI_API_KEY"),
    ] {
        let config = ProviderConfig::found(provider, "m", None, None, &keys).unwrap();
        assert_eq!(config.key.reveal(), format!("key of {name}"));
        let error = ProviderConfig::found(provider, "m", None, None, &none).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        let local = ProviderConfig::found(provider, "m", Some("http://127.0.0.1:8080/v1"), None, &keys).unwrap();
        assert!(local.key.is_empty());
        let in_clear =
            ProviderConfig::found(provider, "m", Some("http://models.example:8000/v1"), None, &keys).unwrap();
        assert!(in_clear.key.is_empty());
        let elsewhere = ProviderConfig::found(provider, "m", Some("https://models.example/v1"), None, &keys).unwrap();
        assert!(elsewhere.key.is_empty(), "who listens there is not the provider");
    }
    assert!(ProviderConfig::found(ProviderKind::Ollama, "m", None, None, &keys).unwrap().key.is_empty());
}

#[test]
fn a_secret_shows_itself_to_nobody() {
    let secret = Secret::new("sk-very-secret");
    let shown = format!("{secret} {secret:?} {}", serde_json::to_string(&secret).unwrap());
    assert_eq!(shown, "*** *** \"***\"");
    assert_eq!(secret.scrub("the key sk-very-secret is wrong"), "the key *** is wrong");
}

#[test]
fn what_tokens_cost_depends_on_what_the_cache_had() {
    let price = Price { input: 3.0, cached_input: 0.3, cache_write: 3.75, output: 15.0 };
    let usage = Usage {
        input_tokens: 1_000_000,
        cached_tokens: 600_000,
        cache_write_tokens: 100_000,
        output_tokens: 10_000,
        estimated: false,
    };
    let expected = 0.3 * 3.0 + 0.6 * 0.3 + 0.1 * 3.75 + 0.01 * 15.0;
    assert!((cost(&usage, &price) - expected).abs() < 1e-9);
    assert!(cost(&Usage::default(), &price).abs() < 1e-12);
}

#[test]
fn a_model_that_the_table_does_not_name_has_no_price() {
    let config = ProviderConfig::new(ProviderKind::OpenAi, "something-new");
    assert_eq!((config.window, config.price), (WINDOW_DEFAULT, None));
    assert_eq!(
        (config.output_tokens, output_default(8_192)),
        (16_384, 2_048),
        "a small window is not all for the reply"
    );
    let sonnet = known(ProviderKind::Anthropic, "claude-sonnet-4-5").unwrap();
    assert_eq!(known(ProviderKind::Anthropic, "claude-sonnet-4-5-20250929"), Some(sonnet));
    assert_ne!(known(ProviderKind::OpenAi, "gpt-5-mini"), known(ProviderKind::OpenAi, "gpt-5"));
    assert_eq!(known(ProviderKind::OpenAi, "gpt-5-turbo-ultra"), None);
    assert_eq!(known(ProviderKind::OpenAi, "claude-sonnet-4-5"), None);
}
