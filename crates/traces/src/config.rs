//! What the standard variables of OpenTelemetry say.

use std::time::Duration;

use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::Sampler;
use percent_encoding::percent_decode_str;

/// The name of this service where nobody names it.
const SERVICE_NAME: &str = "toolhost";
/// Where spans go below the address of a collector.
const TRACES_PATH: &str = "v1/traces";
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// How spans are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batches {
    /// Spans that may wait; further ones are lost.
    pub(crate) waiting_max: usize,
    /// Spans of one message.
    pub(crate) batch_max: usize,
    /// How long the first span of a message waits for others.
    pub(crate) delay: Duration,
}

impl Default for Batches {
    /// As the specification has them.
    fn default() -> Self {
        Self { waiting_max: 2048, batch_max: 512, delay: Duration::from_secs(5) }
    }
}

/// Where spans are sent, which, and how.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) endpoint: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) sampler: Sampler,
    pub(crate) batches: Batches,
    service_name: String,
    attributes: Vec<(String, String)>,
}

/// A variable whose value cannot be used. It does not quote the value, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    pub variable: &'static str,
    pub why: String,
}

/// What the variables say.
#[derive(Debug, Default)]
pub struct Told {
    /// `None`: no traces are wanted.
    pub config: Option<Config>,
    /// Values that are not followed, as the specification has it: telemetry must not keep a program from working.
    pub unusable: Vec<Unusable>,
}

impl Told {
    /// Asks for each variable by its name; an empty value is as good as none.
    #[must_use]
    pub fn by(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut reader = Reader { variable, unusable: Vec::new() };
        let config = reader.config();
        Self { config, unusable: reader.unusable }
    }
}

impl Config {
    /// What is said of this process with each message.
    pub(crate) fn resource(&self, version: &'static str) -> Resource {
        let told = self.attributes.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
        // The name of its own variable comes before one among the attributes.
        let own = [
            KeyValue::new("telemetry.sdk.name", "opentelemetry"),
            KeyValue::new("telemetry.sdk.language", "rust"),
            KeyValue::new("service.version", version),
        ];
        Resource::builder_empty()
            .with_attributes(own)
            .with_attributes(told)
            .with_attributes([KeyValue::new(Key::new("service.name"), Value::from(self.service_name.clone()))])
            .build()
    }
}

struct Reader<F> {
    variable: F,
    unusable: Vec<Unusable>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn bad(&mut self, variable: &'static str, why: impl Into<String>) {
        self.unusable.push(Unusable { variable, why: why.into() });
    }

    fn config(&mut self) -> Option<Config> {
        if self.text("OTEL_SDK_DISABLED").is_some_and(|said| said.eq_ignore_ascii_case("true")) {
            return None;
        }
        let endpoint = self.endpoint()?;
        match self.text("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return None,
            Some(_) => {
                self.bad("OTEL_TRACES_EXPORTER", "only `otlp` and `none` are known here");
                return None;
            }
        }
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            match self.text(name).as_deref() {
                None => continue,
                Some("http/protobuf") => {}
                Some(_) => {
                    self.bad(name, "only `http/protobuf` is spoken here, by default on port 4318 of a collector");
                    return None;
                }
            }
            break;
        }
        let mut attributes = self.pairs("OTEL_RESOURCE_ATTRIBUTES");
        let among = attributes.iter().position(|(name, _)| name == "service.name");
        let among = among.map(|at| attributes.remove(at).1);
        Some(Config {
            endpoint,
            headers: self.headers(),
            timeout: self.timeout(),
            sampler: self.sampler(),
            batches: self.batches(),
            service_name: self.text("OTEL_SERVICE_NAME").or(among).unwrap_or_else(|| SERVICE_NAME.to_owned()),
            attributes,
        })
    }

    /// The address for traces as it stands, or the path for traces below the one for all signals.
    fn endpoint(&self) -> Option<String> {
        self.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| {
            let all = self.text("OTEL_EXPORTER_OTLP_ENDPOINT")?;
            Some(format!("{}/{TRACES_PATH}", all.trim_end_matches('/')))
        })
    }

    fn headers(&mut self) -> Vec<(String, String)> {
        // Those for traces add to those for all signals, and come before them.
        let mut headers = self.pairs("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
        for (name, value) in self.pairs("OTEL_EXPORTER_OTLP_HEADERS") {
            if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                headers.push((name, value));
            }
        }
        headers
    }

    fn timeout(&mut self) -> Duration {
        let name = "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT";
        let name = if self.text(name).is_some() { name } else { "OTEL_EXPORTER_OTLP_TIMEOUT" };
        self.number(name).map_or(TIMEOUT_DEFAULT, Duration::from_millis)
    }

    fn batches(&mut self) -> Batches {
        let usual = Batches::default();
        let size = |number: Option<u64>, usual: usize| number.and_then(|n| usize::try_from(n).ok()).unwrap_or(usual);
        let waiting_max = size(self.number("OTEL_BSP_MAX_QUEUE_SIZE"), usual.waiting_max).clamp(1, WAITING_LIMIT);
        let batch_max = size(self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), usual.batch_max).clamp(1, waiting_max);
        let delay = self.number("OTEL_BSP_SCHEDULE_DELAY").map_or(usual.delay, Duration::from_millis);
        Batches { waiting_max, batch_max, delay }
    }

    fn sampler(&mut self) -> Sampler {
        let usual = || Sampler::ParentBased(Box::new(Sampler::AlwaysOn));
        let Some(named) = self.text("OTEL_TRACES_SAMPLER") else { return usual() };
        match named.as_str() {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => Sampler::TraceIdRatioBased(self.ratio()),
            "parentbased_always_on" => usual(),
            "parentbased_always_off" => Sampler::ParentBased(Box::new(Sampler::AlwaysOff)),
            "parentbased_traceidratio" => Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(self.ratio()))),
            _ => {
                self.bad("OTEL_TRACES_SAMPLER", "no such sampler is known here; `parentbased_always_on` is taken");
                usual()
            }
        }
    }

    fn ratio(&mut self) -> f64 {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.text(name) else { return 1.0 };
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => {
                self.bad(name, "it is no number from 0 to 1; 1 is taken");
                1.0
            }
        }
    }

    fn number(&mut self, name: &'static str) -> Option<u64> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.bad(name, "it is no whole number; what is usual is taken");
        }
        number
    }

    /// `name=value,name=value`, with both percent-encoded, as W3C Baggage writes it.
    fn pairs(&mut self, name: &'static str) -> Vec<(String, String)> {
        let Some(text) = self.text(name) else { return Vec::new() };
        let decoded = |part: &str| {
            let part = percent_decode_str(part.trim()).decode_utf8().ok()?;
            Some(part.into_owned()).filter(|part| !part.is_empty())
        };
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((decoded(name)?, decoded(value).unwrap_or_default()))
        };
        let pairs: Option<Vec<_>> = text.split(',').filter(|pair| !pair.trim().is_empty()).map(pair).collect();
        pairs.unwrap_or_else(|| {
            self.bad(name, "it is no list of `name=value`, separated by commas; it is left out");
            Vec::new()
        })
    }
}

/// Most spans that may wait, whatever is asked for: about 64 MiB of them.
const WAITING_LIMIT: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Batches, Told};

    fn told(variables: &[(&str, &str)]) -> Told {
        Told::by(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    #[test]
    fn without_an_address_nothing_is_sent() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_SAMPLER", "always_on")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let told = told(variables);
            assert!(told.config.is_none() && told.unusable.is_empty(), "{variables:?}: {told:?}");
        }
    }

    #[test]
    fn the_address_for_traces_comes_before_the_one_for_all() {
        let config = told(&[ENDPOINT]).config.expect("it is on");
        assert_eq!(config.endpoint, "http://127.0.0.1:4318/v1/traces");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/own");
        assert_eq!(told(&[ENDPOINT, own]).config.expect("it is on").endpoint, "http://127.0.0.1:1/own");
    }

    #[test]
    fn what_others_speak_is_refused_and_named() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let told = told(&[ENDPOINT, (name, value)]);
            assert_eq!(told.unusable.first().map(|unusable| unusable.variable), Some(name));
            assert!(told.config.is_none(), "{name}");
        }
        let own = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
        assert!(told(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), own]).config.is_some());
    }

    #[test]
    fn headers_and_attributes_are_lists_of_encoded_pairs() {
        let config = told(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc%3D, x-team = blue,"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "X-Team=green"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=among"),
        ]);
        let config = config.config.expect("it is on");
        let named = |pairs: &[(String, String)]| pairs.iter().map(|(a, b)| format!("{a}: {b}")).collect::<Vec<_>>();
        assert_eq!(named(&config.headers), ["X-Team: green", "authorization: Basic abc="]);
        assert_eq!(named(&config.attributes), ["deployment.environment.name: test"]);
        assert_eq!(config.service_name, "among");
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named_and_not_quoted() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=s3cret"),
            ("OTEL_TRACES_SAMPLER", "s3cret"),
            ("OTEL_BSP_SCHEDULE_DELAY", "s3cret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
        ] {
            let told = told(&[ENDPOINT, (name, value)]);
            let [unusable] = &told.unusable[..] else { unreachable!("{name}: {told:?}") };
            assert!(unusable.variable == name && !unusable.why.contains("s3cret"), "{unusable:?}");
            assert!(told.config.is_some(), "{name}");
        }
        let ratio = told(&[ENDPOINT, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "2")]);
        assert_eq!(ratio.unusable.len(), 1, "{ratio:?}");
    }

    #[test]
    fn a_message_is_never_larger_than_the_queue() {
        let batches = |size: &'static str| {
            let delay = ("OTEL_BSP_SCHEDULE_DELAY", "7");
            told(&[ENDPOINT, ("OTEL_BSP_MAX_QUEUE_SIZE", size), delay]).config.expect("it is on").batches
        };
        let delay = Duration::from_millis(7);
        assert_eq!(batches("3"), Batches { waiting_max: 3, batch_max: 3, delay });
        assert_eq!(batches("0"), Batches { waiting_max: 1, batch_max: 1, delay });
        assert_eq!(batches("99999999999"), Batches { waiting_max: 65_536, batch_max: 512, delay });
    }
}
