//! One table over all sessions of a folder.
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use pleach_layout::Layouts;
use pleach_tree::{Fidelity, Severity};
use serde::Serialize;

use super::Inspect;
use crate::beside::Beside;
use crate::input::Unlisted;
use crate::output;

/// A session of a folder, or why it could not be read.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) file: String,
    #[serde(flatten)]
    pub(super) session: Option<SessionFacts>,
    pub(super) error: Option<String>,
    /// The files that were read for the session beside its own.
    #[serde(skip)]
    reads: Vec<PathBuf>,
}

impl Row {
    fn failed(file: String, error: String) -> Self {
        Self { file, session: None, error: Some(error), reads: Vec::new() }
    }

    fn unlisted(unlisted: &Unlisted) -> Self {
        Self::failed(unlisted.path.display().to_string(), unlisted.as_error().to_string())
    }
}

/// What is known of a session without a model.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SessionFacts {
    pub(super) harness: String,
    pub(super) harness_version: Option<String>,
    pub(super) fidelity: Fidelity,
    pub(super) rollouts: usize,
    pub(super) generations: usize,
    pub(super) evictions: usize,
    pub(super) sampled_tokens: usize,
    pub(super) packed_tokens: usize,
    pub(super) segments_tokens: Option<usize>,
    /// Sampled tokens that each flattening trains.
    pub(super) compressed_supervised: usize,
    pub(super) full_supervised: usize,
    pub(super) warnings: usize,
    pub(super) repairs: usize,
}

/// Reads all sessions, as many at once as there are cores; one that cannot be read is a row of its
/// own.
pub(super) fn rows(inspect: &Inspect, files: &[Result<PathBuf, Unlisted>]) -> Vec<Row> {
    let progress = ProgressBar::new(files.len() as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:32} {pos}/{len} sessions, {eta} left {wide_msg}")
    {
        progress.set_style(style);
    }
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(vec![None; files.len()]));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { break };
                    let row = match file {
                        Ok(file) => guarded(file, || session(inspect, file)),
                        Err(unlisted) => Row::unlisted(unlisted),
                    };
                    rows.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(row);
                    progress.inc(1);
                }
            });
        }
    });
    progress.finish_and_clear();
    once(rows.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect())
}

/// The row of a file; where reading it panics, that is one row and not the end of the table.
fn guarded(file: &Path, read: impl FnOnce() -> Result<(SessionFacts, Vec<PathBuf>)>) -> Row {
    let name = file.display().to_string();
    match panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok((session, reads))) => Row { file: name, session: Some(session), error: None, reads },
        Ok(Err(error)) => Row::failed(name, output::causes(&error)),
        Err(_) => {
            let error = format!(
                "{name}: reading it failed inside this program, which is a fault of the program; report the file"
            );
            Row::failed(name, error)
        }
    }
}

/// The rows without those of files that another session has read as its own.
fn once(mut rows: Vec<Row>) -> Vec<Row> {
    let mut beside = Beside::default();
    for row in &rows {
        beside.add(Path::new(&row.file), &row.reads);
    }
    rows.retain(|row| !beside.has(Path::new(&row.file)));
    rows
}

fn session(inspect: &Inspect, file: &Path) -> Result<(SessionFacts, Vec<PathBuf>)> {
    let loaded = inspect.input.load(file, &inspect.tokens)?;
    let account = Layouts::new(&loaded.tree)?.account()?;
    let (header, stats) = (loaded.tree.header(), &account.stats);
    let count = |severity| loaded.found.iter().filter(|found| found.severity == severity).count();
    let session = SessionFacts {
        harness: header.harness.clone(),
        harness_version: header.harness_version.clone(),
        fidelity: header.fidelity,
        rollouts: loaded.tree.rollouts().len(),
        generations: stats.generations,
        evictions: stats.evictions,
        sampled_tokens: stats.sampled_tokens,
        packed_tokens: stats.packed.tokens,
        segments_tokens: stats.segments.map(|segments| segments.tokens),
        compressed_supervised: stats.compressed.supervised,
        full_supervised: stats.full.supervised,
        warnings: count(Severity::Warning),
        repairs: count(Severity::Repaired),
    };
    Ok((session, loaded.files))
}

/// Prints the rows, names relative to the folder, and to standard error why a session could not be
/// read.
pub(super) fn print(rows: &[Row], folder: &Path) -> Result<()> {
    let header = [
        "session",
        "harness",
        "fidelity",
        "calls",
        "evictions",
        "sampled",
        "packed",
        "segments",
        "compressed",
        "warnings",
    ];
    let mut table = output::table(header);
    for row in rows {
        let inside = Path::new(&row.file)
            .strip_prefix(folder)
            .ok()
            .filter(|name| !name.as_os_str().is_empty());
        let name = inside.map_or_else(|| row.file.clone(), |name| name.display().to_string());
        let Some(session) = &row.session else {
            table.add_row([name, "not read".into()]);
            continue;
        };
        let version = session.harness_version.as_deref().unwrap_or_default();
        let coverage = match session.sampled_tokens {
            0 => "-".into(),
            sampled => {
                format!("{:.1} %", 100.0 * session.compressed_supervised as f64 / sampled as f64)
            }
        };
        table.add_row([
            name,
            format!("{} {version}", session.harness).trim_end().to_owned(),
            format!("{:?}", session.fidelity).to_lowercase(),
            output::size(session.generations),
            output::size(session.evictions),
            output::size(session.sampled_tokens),
            output::size(session.packed_tokens),
            session.segments_tokens.map_or_else(|| "-".into(), output::size),
            coverage,
            output::size(session.warnings + session.repairs),
        ]);
    }
    output::line(table.trim_fmt())?;
    let errors: Vec<&str> = rows.iter().filter_map(|row| row.error.as_deref()).collect();
    for error in &errors {
        eprintln!("error: {}", first_line(error));
    }
    output::line(match (rows.len(), errors.len()) {
        (1, 0) => "1 session, read".to_owned(),
        (1, _) => "1 session, not read".to_owned(),
        (sessions, unread) => format!(
            "{} sessions, {} of them not read",
            output::size(sessions),
            output::size(unread)
        ),
    })
}

/// The first fault of a file, which a table has room for; how many more there are follows it.
fn first_line(error: &str) -> String {
    let mut lines = error.lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() {
        0 => first.to_owned(),
        more => format!("{first} (and {more} more lines)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_folder_that_cannot_be_listed_is_named_in_its_error() {
        let row = Row::unlisted(&Unlisted {
            path: "closed".into(),
            error: "cannot be listed: Permission denied".into(),
        });
        assert_eq!(row.error.as_deref(), Some("closed: cannot be listed: Permission denied"));
    }

    #[test]
    fn a_session_whose_reading_panics_is_a_row_that_says_so() {
        let row = guarded(Path::new("odd.jsonl"), || panic!("a fault of the program"));
        assert!(
            row.session.is_none()
                && row.error.is_some_and(|error| error.starts_with("odd.jsonl: reading it failed"))
        );
    }
}
