use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// Writes a line to standard output; a reader that has gone away ends the program quietly.
pub(crate) fn line(text: impl Display) -> Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.context("standard output cannot be written"),
    }
}

/// Writes a value as JSON to standard output.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(serde_json::to_string(value).context("the result cannot be written as JSON")?)
}

/// Writes an error and its causes to standard error.
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("error: {}", causes(error));
}

/// A text of the library, whose advice names the library's options, with the flags that set them.
pub(crate) fn flags(text: impl Display) -> String {
    text.to_string()
        .replace("ReadOptions::LENIENT", "--lenient")
        .replace("the `harness` of `convert_from`", "--from")
}

/// An error and its causes in one text.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let cause = flags(cause);
        if !text.contains(&cause) {
            let joint = if text.is_empty() { "" } else { ": " };
            text = text + joint + &cause;
        }
    }
    text
}

/// A table whose first column is text and whose others are numbers.
pub(crate) fn table<H: Into<String>>(header: impl IntoIterator<Item = H>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A count with thin groups of three digits.
pub(crate) fn count(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let first = digits.len() % 3;
    let mut grouped = digits[..first].to_string();
    for (index, digit) in digits[first..].chars().enumerate() {
        if index % 3 == 0 && !grouped.is_empty() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of things in memory.
pub(crate) fn size(number: usize) -> String {
    count(number as u64)
}

/// Bytes in the unit a person would use.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| number >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", number as f64 / *unit as f64),
        None => format!("{number} B"),
    }
}
