//! The table of a folder as a Parquet file.
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;

use super::folder::{Row, SessionFacts};

/// Writes one row a session, columns that an unread session does not have as null.
pub(super) fn write(rows: &[Row], path: &Path) -> Result<()> {
    let batch = batch(rows).context("the table cannot be laid out as columns")?;
    let file = File::create(path).with_context(|| {
        format!("{}: cannot be written; choose another path for --out", path.display())
    })?;
    let written = || format!("{}: cannot be written as Parquet", path.display());
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).with_context(written)?;
    writer.write(&batch).with_context(written)?;
    writer.close().with_context(written)?;
    Ok(())
}

fn batch(rows: &[Row]) -> Result<RecordBatch> {
    let texts = |of: &dyn Fn(&Row) -> Option<String>| {
        Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef
    };
    let session = |of: fn(&SessionFacts) -> Option<String>| {
        texts(&move |row: &Row| row.session.as_ref().and_then(of))
    };
    let count = |of: fn(&SessionFacts) -> Option<usize>| {
        let of = |row: &Row| row.session.as_ref().and_then(of).map(|count| count as u64);
        Arc::new(rows.iter().map(of).collect::<UInt64Array>()) as ArrayRef
    };
    let columns = [
        ("file", texts(&|row| Some(row.file.clone()))),
        ("error", texts(&|row| row.error.clone())),
        ("harness", session(|session| Some(session.harness.clone()))),
        ("harness_version", session(|session| session.harness_version.clone())),
        ("fidelity", session(|session| Some(format!("{:?}", session.fidelity).to_lowercase()))),
        ("rollouts", count(|session| Some(session.rollouts))),
        ("generations", count(|session| Some(session.generations))),
        ("evictions", count(|session| Some(session.evictions))),
        ("sampled_tokens", count(|session| Some(session.sampled_tokens))),
        ("packed_tokens", count(|session| Some(session.packed_tokens))),
        ("segments_tokens", count(|session| session.segments_tokens)),
        ("compressed_supervised", count(|session| Some(session.compressed_supervised))),
        ("full_supervised", count(|session| Some(session.full_supervised))),
        ("warnings", count(|session| Some(session.warnings))),
        ("repairs", count(|session| Some(session.repairs))),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    )?)
}
