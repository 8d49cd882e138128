use std::io::Write;

use crate::{BranchTree, Record, TreeError};

/// Writes records, one JSON object a line.
///
/// # Errors
/// Those of `writer`, and a record of unknown type without a tag.
pub fn write_records<'a>(
    mut writer: impl Write,
    records: impl IntoIterator<Item = &'a Record>,
) -> Result<(), TreeError> {
    for record in records {
        serde_json::to_writer(&mut writer, record)
            .map_err(|error| TreeError::Write(error.into()))?;
        writer.write_all(b"\n")?;
    }
    writer.flush()?;
    Ok(())
}

impl BranchTree {
    /// Writes the records that the tree was built from, unknown fields and records included.
    ///
    /// # Errors
    /// As [`write_records`].
    pub fn write(&self, writer: impl Write) -> Result<(), TreeError> {
        write_records(writer, self.records())
    }
}
