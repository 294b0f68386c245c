//! Packages made up by chance: they come back as they were, and valid ones are valid.

use proptest::prelude::*;
use serde_json::json;
use toolhost_builder::{Package, Severity, from_zip, render, to_zip, validate};
use toolhost_testkit::packages::{extra, package, words};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn a_generated_package_is_valid_and_comes_back_byte_for_byte(files in package()) {
        let package = Package::read(files.clone());
        let errors: Vec<_> = validate(&package).into_iter().filter(|f| f.severity == Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{errors:#?}");
        prop_assert_eq!(package.files(), &files);
        let zip = to_zip(package.files());
        let again = Package::read(from_zip(&zip).unwrap());
        prop_assert_eq!(again.files(), &files);
        prop_assert_eq!(to_zip(again.files()), zip);
        prop_assert_eq!(again.workflows().len(), package.workflows().len());
        prop_assert_eq!(again.into_files(), files);
    }

    #[test]
    fn front_matter_that_we_write_is_read_as_it_was_meant(extra in extra(), body in words()) {
        let front = json!({ "a": extra, "b: c": 1, "true": "no", "x": "2026-11-21", "1": "~" });
        let text = render(front.as_object().unwrap(), &body);
        let document = toolhost_builder::Document::parse("a.md", text.as_bytes()).unwrap();
        prop_assert_eq!(document.front(), &front);
        prop_assert_eq!(document.body(), body);
    }
}
