//! What others reach on masks of the same names, read from `peers.json`.
use anyhow::{Context, Result};
use serde::Deserialize;

use crate::blocks::Section;
use crate::output;

const PEERS: &str = include_str!("../peers.json");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peers {
    /// Where and how it was measured.
    notes: Vec<String>,
    figures: Vec<Figure>,
}

/// One way on one mask; `both` is forward and backward, absent where the way has no backward.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    mask: String,
    tokens: u32,
    way: String,
    forward_ms: f64,
    forward_rate: f64,
    both_ms: Option<f64>,
    both_rate: Option<f64>,
}

/// The figures as a table.
///
/// # Errors
/// A file of figures that is damaged.
pub(crate) fn section() -> Result<Section> {
    let peers: Peers = serde_json::from_str(PEERS).context("peers.json")?;
    let none = || "-".to_owned();
    let ms = |ms: f64| output::count(ms.round() as u64);
    let rate = |rate: f64| format!("{rate:.2}");
    let row = |figure: Figure| {
        vec![
            format!("{} {}", figure.mask, output::count(figure.tokens)),
            figure.way,
            ms(figure.forward_ms),
            rate(figure.forward_rate),
            figure.both_ms.map_or_else(none, ms),
            figure.both_rate.map_or_else(none, rate),
        ]
    };
    Ok(Section {
        title: "Beside PyTorch".into(),
        notes: peers.notes,
        names: 2,
        header: vec!["mask, tokens", "way", "forward ms", "rate", "with backward ms", "rate"],
        rows: peers.figures.into_iter().map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_figures_of_others_are_a_table() {
        let section = super::section().unwrap_or_else(|error| panic!("{error:#}"));
        assert!(section.rows.iter().all(|row| row.len() == section.header.len()));
        let first = ["causal 4,096", "SDPA, is_causal", "120", "0.79", "458", "0.72"];
        assert_eq!(section.rows[0], first);
    }
}
