//! Where a page stands in what happens in projects: written on the page, and said when its stream begins.

use toolhost_contract::ToolError;
use toolhost_store::AsksMark;

use crate::http::OpenProject;

/// What stands between the projects in what a page has heard.
pub(super) const BETWEEN: &str = "-";

/// Where a page stands in what happens in a project: what it has heard of, and so what its stream begins after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heard {
    /// The number of the last event.
    pub(super) number: i64,
    pub(super) asks: AsksMark,
}

impl Heard {
    pub(super) fn written(self, project: i64) -> String {
        let (last, open) = self.asks.parts();
        format!("{project}.{}.{last}.{open}", self.number)
    }

    pub(super) fn parse(text: &str) -> Option<(i64, Self)> {
        let numbers: Vec<i64> = text.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [project, number, last, open] = numbers[..] else { return None };
        Some((project, Self { number, asks: AsksMark::of_parts((last, open)) }))
    }
}

/// Where a project stands, for a page that is about to be made: what happens from now on is told to the page by its stream.
///
/// # Errors
/// If the database does not answer.
pub(super) async fn standing(project: &OpenProject) -> Result<String, ToolError> {
    let number = project.reader.stream_end(project.id).await?.number();
    let asks = project.gate.queue().asks().mark(project.id).await?;
    Ok(Heard { number, asks }.written(project.id))
}
