//! What people see: tables, JSON, errors. Colour goes where a terminal is and `NO_COLOR` is not.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use toolhost_contract::{QUOTE_MARK, ToolError, visible_json};
pub(crate) use toolhost_contract::{visible, visible_line};

use crate::fold::{columns_of, cut, fitting, folded, width_of};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// Prints a line; a reader that has gone (`| head`) ends the printing, not the program.
pub(crate) fn line(text: impl std::fmt::Display) {
    // A closed pipe is the reader's choice.
    let _ = whole(text);
}

/// As [`line()`], for what must have been printed for something else to happen.
pub(crate) fn whole(text: impl std::fmt::Display) -> std::io::Result<()> {
    let out = std::io::stdout();
    let text = format!("{}\n", folded(text.to_string(), &out));
    at_once(out, AutoStream::choice(&std::io::stdout()), &text)
}

/// Prints a line that a terminal may break and nothing else does: an address that somebody copies.
pub(crate) fn address(text: &str) {
    // As above.
    let _ = at_once(std::io::stdout(), ColorChoice::Never, &format!("{text}\n"));
}

/// As [`address()`], beside the output.
pub(crate) fn address_aside(text: &str) {
    // As above.
    let _ = at_once(std::io::stderr(), ColorChoice::Never, &format!("{text}\n"));
}

/// Prints the next piece of a text to the output.
pub(crate) fn piece(text: &str) {
    // As above.
    let _ = at_once(std::io::stdout(), AutoStream::choice(&std::io::stdout()), text);
}

/// Prints what a tool answered. A file gets it byte by byte; a terminal, and a program that may show it at one (`| head`), what
/// stands in it: no text of an agent's moves the cursor or turns what follows around.
pub(crate) fn answer(text: &str) {
    if is_file() {
        // As above.
        let _ = at_once(std::io::stdout(), ColorChoice::Always, &format!("{text}\n"));
    } else {
        line(visible(text));
    }
}

/// A line of JSON for a file or a program, whose bytes the last line of an export has the hash of. Whoever looks at it in a
/// terminal sees what stands there.
pub(crate) fn exported(line: String) -> String {
    if std::io::stdout().is_terminal() { visible_json(&line) } else { line }
}

/// Writes a text with one system call, without its colours where none are shown. Another program may print at the same
/// terminal (`| tee log`), and its words must not come between a line and its end.
fn at_once(mut stream: impl Write, colours: ColorChoice, text: &str) -> std::io::Result<()> {
    let text = match colours {
        ColorChoice::Never => Cow::Owned(strip_str(text).to_string()),
        _ => Cow::Borrowed(text),
    };
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Whether what is printed goes where nobody reads it: a standard output that was closed is `/dev/null`, too.
pub(crate) fn goes_nowhere() -> bool {
    let (Some(out), Ok(null)) = (stdout_metadata(), std::fs::metadata("/dev/null")) else { return true };
    out.file_type().is_char_device() && out.rdev() == null.rdev()
}

/// Whether what is printed may stand at a terminal between lines of the host's: not only where it is one, but also where it
/// goes through a program that shows it there (`| tee log`). A file is read later, and has the text alone.
pub(crate) fn is_shown_beside_notes() -> bool {
    std::io::stdout().is_terminal() || (std::io::stderr().is_terminal() && !is_file() && !goes_nowhere())
}

/// Whether what is printed goes into a file.
fn is_file() -> bool {
    stdout_metadata().is_some_and(|out| out.is_file())
}

fn stdout_metadata() -> Option<Metadata> {
    File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?).metadata().ok()
}

/// Prints a line for people beside the output.
pub(crate) fn note(text: impl std::fmt::Display) {
    let text = format!("{}\n", folded(text.to_string(), &std::io::stderr()));
    // As above.
    let _ = at_once(std::io::stderr(), AutoStream::choice(&std::io::stderr()), &text);
}

/// Prints what stands before what a person types.
pub(crate) fn prompt(text: &str) {
    // As above.
    let _ = at_once(std::io::stderr(), AutoStream::choice(&std::io::stderr()), &paint(BOLD, text));
}

/// The target in the log by whose level asides are printed.
const ASIDES: &str = "toolhost::asides";
/// The same for times as they are where the terminal is.
const LOCAL_TIMES: &str = "toolhost::local_times";

/// As [`note()`], for what `--quiet` leaves out: progress, and what there is to do next.
pub(crate) fn aside(text: impl std::fmt::Display) {
    if has_asides() {
        note(text);
    }
}

/// Whether asides are printed. The log knows, which is set up once for the program.
pub(crate) fn has_asides() -> bool {
    tracing::enabled!(target: ASIDES, tracing::Level::INFO)
}

/// Rings the terminal's bell, wherever the output goes.
pub(crate) fn bell() {
    // As above.
    let _ = std::io::stderr().write_all(b"\x07");
}

pub(crate) fn clear_line() {
    // As above.
    let _ = write!(anstream::stderr(), "\r\x1b[K");
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    as_it_is(&visible_json(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// One JSON value a line.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    as_it_is(&visible_json(&serde_json::to_string(value)?));
    Ok(())
}

/// For programs: a line that was broken to fit would be another text.
fn as_it_is(text: &str) {
    // A closed pipe is the reader's choice.
    let _ = writeln!(anstream::stdout(), "{text}");
}

/// What an error says, with its causes and the next step.
pub(crate) fn all_of(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Many an error says its cause itself.
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    match error.downcast_ref::<ToolError>().and_then(|error| error.hint.as_deref()) {
        Some(hint) => format!("{text}: {hint}"),
        None => text,
    }
}

pub(crate) fn failure(error: &anyhow::Error) {
    note(format_args!("{BAD}error:{BAD:#} {}", visible(&all_of(error))));
}

/// The same for a program, on standard error: what is on standard output is the answer, as far as it came.
/// `{"ok": false, "error": {"kind": "usage", "message": "…", "exitCode": 2}}`, as a call's outcome has it; `kind` is `usage`, `denied` or `failed`.
pub(crate) fn failure_json(kind: &str, exit_code: u8, error: &anyhow::Error) {
    let told = serde_json::json!({ "kind": kind, "message": all_of(error), "exitCode": exit_code });
    let told = serde_json::json!({ "ok": false, "error": told });
    // Somebody who reads no errors is free to.
    let _ = writeln!(anstream::stderr(), "{}", visible_json(&told.to_string()));
}

/// How many there are of what `one` is the name of one of: `1 error`, `2 errors`.
pub(crate) fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A line of a diff in its colour.
pub(crate) fn diff_line(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'+') => paint(GOOD, line),
        Some(b'-') => paint(BAD, line),
        _ => line.to_owned(),
    }
}

/// What a person is shown of an ask, in colour.
pub(crate) fn asked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split('\n') {
        if !shown.is_empty() {
            shown.push('\n');
        }
        let Some(quoted) = line.strip_prefix(QUOTE_MARK) else {
            let is_warning = line.starts_with("NOT ALL OF IT");
            shown.push_str(&if is_warning { paint(BAD.bold(), line) } else { line.to_owned() });
            continue;
        };
        let style = match quoted.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            _ => Style::new(),
        };
        shown.push_str(&format!("{DIM}{QUOTE_MARK}{DIM:#}{style}{quoted}{style:#}"));
    }
    shown
}

/// Longest cell of a table, characters.
const CELL_CHARS_MAX: usize = 100;

/// A text of somebody else's as a cell: nothing in it deceives, and it leaves room for the others.
pub(crate) fn cell(text: &str) -> String {
    let text = visible_line(text);
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The name of a tool as a caller wrote it: one that no tool has stands between quotes, so that it cannot be taken for what
/// the host says beside it.
pub(crate) fn tool_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty() && name.chars().all(is_plain) { cell(name) } else { format!("\"{}\"", cell(name)) }
}

/// The first line of a text that somebody else wrote, with `…` behind it where the text goes on.
pub(crate) fn first_line(text: &str) -> String {
    let mut lines = text.trim_start_matches('\n').lines();
    let first = visible(lines.next().unwrap_or_default());
    if lines.any(|line| !line.trim().is_empty()) { format!("{first} …") } else { first }
}

/// Columns that are seen: colours take no room.
pub(crate) fn shown_width(cell: &str) -> usize {
    width_of(&strip_str(cell).to_string())
}

/// Columns that are never cut: what stands there is typed again, or names a place.
const WHOLE: &[&str] = &["id", "session", "handle", "call", "folder", "file", "found in", "name", "until", "at"];
/// A column that is cut keeps at least so much.
const COLUMN_WIDTH_MIN: usize = 12;
/// Columns of a terminal that has room for a wide table.
const ROOMY_COLUMNS: usize = 110;
/// Between two columns.
const GAP: usize = 2;

/// Columns as wide as their widest cell; the last one is not padded. At a terminal that is narrower the widest ones are cut.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = head.iter().map(|cell| width_of(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(shown_width(cell));
        }
    }
    if let Some(columns) = columns_of(&std::io::stdout()) {
        narrow(head, &mut widths, columns);
    }
    let render = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(n, (cell, width))| {
            let cell = match shown_width(cell) > *width {
                true => Cow::Owned(cut(&strip_str(cell).to_string(), *width)),
                false => Cow::Borrowed(*cell),
            };
            let pad = if n + 1 == cells.len() { 0 } else { width.saturating_sub(shown_width(&cell)) };
            format!("{cell}{}", " ".repeat(pad))
        });
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP))
    };
    line(paint(BOLD, render(head.to_vec())));
    for row in rows {
        line(render(row.iter().map(String::as_str).collect()));
    }
}

/// A table that leaves these columns out at a terminal of fewer than [`ROOMY_COLUMNS`].
pub(crate) fn table_without(left_out: &[&str], head: &[&str], rows: &[Vec<String>]) {
    if columns_of(&std::io::stdout()).is_none_or(|columns| columns >= ROOMY_COLUMNS) {
        return table(head, rows);
    }
    let is_kept = |name: &&str| !left_out.contains(name);
    let kept = |row: &Vec<String>| -> Vec<String> {
        let cells = head.iter().zip(row).filter(|(name, _)| is_kept(name));
        cells.map(|(_, cell)| cell.clone()).collect()
    };
    let head: Vec<&str> = head.iter().copied().filter(is_kept).collect();
    table(&head, &rows.iter().map(kept).collect::<Vec<_>>());
}

/// Takes from the widest columns what a terminal has no room for. What still does not fit is broken into lines, as every text.
fn narrow(head: &[&str], widths: &mut [usize], columns: usize) {
    let mut over = (widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)).saturating_sub(columns);
    while over > 0 {
        let may_be_cut = |(name, width): &(&&str, &mut usize)| !WHOLE.contains(*name) && **width > COLUMN_WIDTH_MIN;
        let Some((_, widest)) = head.iter().zip(widths.iter_mut()).filter(may_be_cut).max_by_key(|(_, width)| **width)
        else {
            return;
        };
        *widest -= 1;
        over -= 1;
    }
}

/// The end of the year 9999, milliseconds since 1970.
const TIME_MS_MAX: u64 = 253_402_300_799_999;

/// RFC 3339, such as `2026-11-21T06:54:33Z`.
pub(crate) fn time(unix_ms: i64) -> String {
    // The formatter knows four digits of a year.
    let since = std::time::Duration::from_millis(u64::try_from(unix_ms).unwrap_or(0).min(TIME_MS_MAX));
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string()
}

/// What a clock on the wall shows where this terminal is, such as `2026-11-21 07:54:33`; [`time()`] with `--utc`, and where a
/// program reads it.
pub(crate) fn local_time(unix_ms: i64) -> String {
    use chrono::{Local, TimeZone};
    let is_for_people = std::io::stdout().is_terminal() && tracing::enabled!(target: LOCAL_TIMES, tracing::Level::INFO);
    match Local.timestamp_millis_opt(unix_ms) {
        chrono::LocalResult::Single(local) if is_for_people => local.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => time(unix_ms),
    }
}

/// How long something takes or is over, in its largest unit: `40 s`, `3 min`, `5 h`, `2 days`.
pub(crate) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Tells a person at the terminal that a long call is still running.
pub(crate) struct Running;

impl toolhost_contract::ProgressSink for Running {
    fn report(&self, progress: toolhost_contract::Progress) {
        if !has_asides() {
            return;
        }
        // Written over itself; the answer that follows begins on a clean line.
        let message = fitting(&visible_line(&progress.message), &std::io::stderr());
        let _ = write!(anstream::stderr(), "\r\x1b[K{DIM}{message}{DIM:#}\r");
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorFlag {
    Auto,
    Always,
    Never,
}

/// Uses colours as the user wants, whatever the terminal and `NO_COLOR` say.
pub(crate) fn use_colours(when: ColorFlag) {
    let choice = match when {
        ColorFlag::Auto => ColorChoice::Auto,
        ColorFlag::Always => ColorChoice::Always,
        ColorFlag::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Logs to standard error; what was typed sets the level, else `TOOLHOST_LOG`, and it is `warn` otherwise. The library that
/// reads MCP is silent unless it is named.
pub(crate) fn start_log(verbose: u8, is_quiet: bool, is_utc: bool) {
    let on = |is_on: bool| if is_on { "info" } else { "off" };
    let (asides, local) = (on(!is_quiet), on(!is_utc));
    let level = match verbose {
        _ if is_quiet => "error".to_owned(),
        0 => std::env::var("TOOLHOST_LOG").unwrap_or_else(|_| "warn".to_owned()),
        1 => "info".to_owned(),
        _ => "debug".to_owned(),
    };
    let filter =
        tracing_subscriber::EnvFilter::try_new(format!("rmcp=error,{level},{ASIDES}={asides},{LOCAL_TIMES}={local}"))
            .unwrap_or_default();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    let format = std::env::var("TOOLHOST_LOG_FORMAT").unwrap_or_default();
    // Only a second call could fail, and there is one.
    let _ = match &*format {
        // Line breaks and terminal commands are escaped in JSON.
        "json" => log.json().flatten_event(true).with_writer(std::io::stderr).try_init(),
        _ => log.with_writer(|| LogLines(std::io::stderr())).try_init(),
    };
}

/// Writes each event of the log as one line. An error may name a file of an agent's, with line breaks and terminal commands in it.
struct LogLines<W>(W);

impl<W: Write> Write for LogLines<W> {
    /// The logger passes one whole event with each call.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.write_all(format!("{}\n", visible_line(text.trim_end_matches('\n'))).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_cut_where_it_is_widest_and_never_where_something_is_typed_again() {
        let check = |columns, expected: [usize; 4]| {
            let mut widths = [40, 20, 60, 30];
            narrow(&["id", "who", "title", "goal"], &mut widths, columns);
            assert_eq!(widths, expected, "{columns}");
        };
        check(200, [40, 20, 60, 30]);
        check(150, [40, 20, 54, 30]);
        check(100, [40, 18, 18, 18]);
        // Not all of it fits: the rest is for the terminal's lines.
        check(50, [40, 12, 12, 12]);
    }

    #[test]
    fn an_event_of_the_log_is_one_line() {
        let mut lines = LogLines(Vec::new());
        assert!(lines.write_all("ERROR x: \u{1b}[2J\nfence       full\n".as_bytes()).is_ok());
        assert_eq!(lines.0, b"ERROR x: \\u{1b}[2J\\u{a}fence       full\n");
    }

    #[test]
    fn a_name_that_no_tool_has_cannot_be_taken_for_what_the_host_says() {
        assert_eq!(tool_name("file.read"), "file.read");
        let forged = tool_name("file.read  ok 1 ms\n   901  git.push  local says allow");
        assert_eq!(forged, "\"file.read  ok 1 ms\\u{a}   901  git.push  local says allow\"");
        assert_eq!(tool_name(""), "\"\"");
    }
}
