//! The certificate of SDCC as a table for a person.
use anyhow::Result;
use pleach_train::{JunctionCertificate, SdccCertificate};

use super::table::nats;
use crate::output;

/// One row a junction, and the sum.
pub(super) fn print(certificate: &SdccCertificate) -> Result<()> {
    const SHOWN: usize = 12;
    let columns =
        ["sdcc, by the next eviction", "sampled", "in compressed", "diverging", "KL sum", "KL max", "total variation"];
    let mut table = output::table(columns.into_iter().chain(["at most", "max", "at most"]));
    for junction in certificate.junctions.iter().take(SHOWN) {
        let name = junction.junction.map_or_else(|| "  none".to_string(), |context| format!("  context {context}"));
        table.add_row(row(name, junction));
    }
    table.add_row(row("  all".to_string(), &certificate.all));
    output::line(table.trim_fmt())?;
    if certificate.junctions.len() > SHOWN {
        output::line(format!("  ... and {} more", output::size(certificate.junctions.len() - SHOWN)))?;
    }
    let untrained = certificate.all.coverage.untrained();
    let (untrained, sampled) = (output::size(untrained), output::size(certificate.all.coverage.sampled));
    output::line(format!("{untrained} of {sampled} sampled tokens are not in the compressed walk: sdcc does not train them"))
}

/// Means and maxima of the total variation beside what the KL bounds them by.
fn row(name: String, junction: &JunctionCertificate) -> [String; 10] {
    let coverage = junction.coverage;
    [
        name,
        output::size(coverage.sampled),
        output::size(coverage.supervised),
        output::size(coverage.diverging),
        nats(junction.kl_sum),
        nats(junction.kl_max),
        nats(junction.total_variation_mean),
        nats(junction.pinsker_mean),
        nats(junction.total_variation_max),
        nats(junction.pinsker_max),
    ]
}
