//! The URLs that an operator lets others than the operator name.

use reqwest::Url;

use super::error::{Error, Result};
use crate::client::checked;

/// The beginnings of URLs that messages may go to, as an operator has listed them.
#[derive(Debug, Clone, Default)]
pub struct AllowedUrls(Vec<Url>);

impl AllowedUrls {
    /// # Errors
    /// For one that is neither `https` nor of this machine, or has a query.
    pub fn parse(beginnings: &[String]) -> Result<Self> {
        let parse = |text: &String| {
            let url = checked(text).map_err(Error::Url)?;
            let is_no_beginning = url.query().is_some() || url.fragment().is_some();
            if is_no_beginning {
                Err(Error::Url("has a query, and it is the beginning of others".to_owned()))
            } else {
                Ok(url)
            }
        };
        beginnings.iter().map(parse).collect::<Result<Vec<Url>>>().map(Self)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a URL begins with one of them: scheme, host and port are the same, and the path is the same or below it.
    ///
    /// # Errors
    /// For what is not the URL of a webhook.
    pub fn covers(&self, url: &str) -> Result<bool> {
        let url = checked(url).map_err(Error::Url)?;
        Ok(self.0.iter().any(|beginning| beginning.origin() == url.origin() && is_below(url.path(), beginning.path())))
    }
}

/// The parser has taken out `.` and `..`, and their encoded forms.
fn is_below(path: &str, above: &str) -> bool {
    path == above || path.strip_prefix(above.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

impl std::fmt::Display for AllowedUrls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(Url::as_str).collect();
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::AllowedUrls;

    fn allowed(beginnings: &[&str]) -> AllowedUrls {
        let beginnings: Vec<String> = beginnings.iter().map(|&text| text.to_owned()).collect();
        AllowedUrls::parse(&beginnings).expect("they are URLs")
    }

    #[test]
    fn a_url_is_covered_by_its_own_host_and_path_alone() {
        let allowed = allowed(&["https://hooks.example.org/team", "https://other.example.org"]);
        for url in [
            "https://hooks.example.org/team",
            "https://hooks.example.org/team/a?token=b",
            "https://HOOKS.example.org:443/team/",
            "https://other.example.org/anything",
        ] {
            assert!(allowed.covers(url).expect(url), "{url}");
        }
        for url in [
            "https://hooks.example.org/",
            "https://hooks.example.org/teams",
            "https://hooks.example.org/team/../admin",
            "https://hooks.example.org/team/%2e%2e/admin",
            "https://hooks.example.org:8443/team",
            "https://hooks.example.org.evil.test/team",
            "https://evil.test/https://hooks.example.org/team",
            "https://evil.test\\@hooks.example.org/team",
            "http://127.0.0.1/team",
        ] {
            assert!(!allowed.covers(url).unwrap_or(false), "{url}");
        }
        assert!(allowed.covers("http://hooks.example.org/team").is_err());
        assert!(allowed.covers("https://me:pw@hooks.example.org/team").is_err());
        assert!(!AllowedUrls::default().covers("https://hooks.example.org/team").expect("it is a URL"));
    }
}
