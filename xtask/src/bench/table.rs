//! Judges measurements by their budgets and prints them.

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    PerSecond,
    Mebibytes,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{value:.3} ms"),
            Unit::PerSecond => format!("{value:.0} /s"),
            Unit::Mebibytes => format!("{value:.1} MiB"),
        }
    }
}

/// What a row may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Budget {
    /// Ours, by itself.
    OursMax(f64),
    OursMin(f64),
    /// Ours divided by the peer's.
    RatioMax(f64),
    RatioMin(f64),
    /// Ours minus the peer's.
    AddedMax(f64),
}

impl Budget {
    fn show(self, unit: Unit) -> String {
        match self {
            Budget::OursMax(max) => format!("<= {}", unit.show(max)),
            Budget::OursMin(min) => format!(">= {}", unit.show(min)),
            Budget::RatioMax(max) => format!("<= {max:.2} x"),
            Budget::RatioMin(min) => format!(">= {min:.2} x"),
            Budget::AddedMax(max) => format!("<= +{}", unit.show(max)),
        }
    }

    /// Nothing, if it takes a peer to say.
    fn is_kept(self, ours: f64, peer: Option<f64>) -> Option<bool> {
        match self {
            Budget::OursMax(max) => Some(ours <= max),
            Budget::OursMin(min) => Some(ours >= min),
            Budget::RatioMax(max) => peer.map(|peer| ours <= peer * max),
            Budget::RatioMin(min) => peer.map(|peer| ours >= peer * min),
            Budget::AddedMax(max) => peer.map(|peer| ours - peer <= max),
        }
    }
}

/// The numbers of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) ours: f64,
    pub(crate) peer: Option<(&'static str, f64)>,
}

/// One line of the table. A row without a budget is there to explain the others.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) unit: Unit,
    pub(crate) budgets: &'static [Budget],
    /// Or why it could not be measured.
    pub(crate) measured: Result<Measured, String>,
}

impl Row {
    /// Whether nothing is wrong: a missing peer leaves the question open, a failed measurement does not.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.verdict(), "kept" | "no peer" | "-")
    }

    fn verdict(&self) -> &'static str {
        let Ok(Measured { ours, peer }) = self.measured else { return "FAILED" };
        let answers = self.budgets.iter().map(|budget| budget.is_kept(ours, peer.map(|(_, value)| value)));
        let answers = answers.collect::<Vec<_>>();
        match answers.as_slice() {
            [] => "-",
            answers if answers.contains(&Some(false)) => "OVER",
            answers if answers.contains(&None) => "no peer",
            _ => "kept",
        }
    }

    fn cells(&self) -> [String; 6] {
        let budgets = self.budgets.iter().map(|budget| budget.show(self.unit)).collect::<Vec<_>>().join(", ");
        let (ours, peer, ratio) = match &self.measured {
            Err(_) => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
            Ok(Measured { ours, peer }) => (
                self.unit.show(*ours),
                peer.map_or("-".to_owned(), |(name, value)| format!("{} ({name})", self.unit.show(value))),
                peer.map_or("-".to_owned(), |(_, value)| format!("{:.2}", ours / value)),
            ),
        };
        [self.what.to_owned(), ours, peer, ratio, budgets, self.verdict().to_owned()]
    }
}

/// The table, and below it why rows failed.
pub(crate) fn render(rows: &[Row]) -> String {
    let head = ["what", "ours", "peer", "ratio", "budget", "verdict"].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text: Vec<String> = lines
        .iter()
        .map(|cells| {
            let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect();
    for row in rows {
        if let Err(why) = &row.measured {
            text.push(format!("\n{}: {why}", row.what));
        }
    }
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Budget, Measured, Row, Unit, render};

    fn check(budgets: &'static [Budget], ours: f64, peer: Option<f64>, verdict: &str) {
        let measured = Ok(Measured { ours, peer: peer.map(|value| ("peer", value)) });
        let row = Row { what: "row", unit: Unit::Milliseconds, budgets, measured };
        assert_eq!(row.verdict(), verdict, "{budgets:?} {ours} {peer:?}");
        assert_eq!(row.is_kept(), verdict != "OVER");
    }

    #[test]
    fn budgets_judge() {
        check(&[], 1.0, None, "-");
        check(&[Budget::OursMax(15.0)], 15.0, None, "kept");
        check(&[Budget::OursMax(15.0)], 15.1, Some(1000.0), "OVER");
        check(&[Budget::OursMax(15.0), Budget::RatioMax(0.1)], 14.0, Some(139.0), "OVER");
        check(&[Budget::OursMax(15.0), Budget::RatioMax(0.1)], 14.0, Some(141.0), "kept");
        check(&[Budget::OursMax(15.0), Budget::RatioMax(0.1)], 14.0, None, "no peer");
        check(&[Budget::OursMax(15.0), Budget::RatioMax(0.1)], 16.0, None, "OVER");
        check(&[Budget::RatioMin(1.5)], 1.4, Some(1.0), "OVER");
        check(&[Budget::AddedMax(10.0)], 14.0, Some(4.5), "kept");
    }

    #[test]
    fn the_table_lines_up_and_says_why_a_row_failed() {
        let measured = Ok(Measured { ours: 1.5, peer: Some(("rg", 2.0)) });
        let rows = [
            Row { what: "list", unit: Unit::Milliseconds, budgets: &[Budget::RatioMax(1.15)], measured },
            Row { what: "bash", unit: Unit::Milliseconds, budgets: &[], measured: Err("no bash here".to_owned()) },
        ];
        let expected = "\
what  ours      peer           ratio  budget     verdict
list  1.500 ms  2.000 ms (rg)  0.75   <= 1.15 x  kept
bash  -         -              -                 FAILED

bash: no bash here";
        assert_eq!(render(&rows), expected);
        assert!(!rows[1].is_kept());
    }
}
