//! The certificate of SDCC as a table for a person.
use anyhow::Result;
use pleach_train::objective::{JunctionCertificate, SdccCertificate};

use super::table::nats;
use crate::output;

/// What advantages are taken to lie within; bounds grow in proportion to it.
const A_MAX: f64 = 1.0;

/// One row a junction, and the sum.
pub(super) fn print(certificate: &SdccCertificate) -> Result<()> {
    const SHOWN: usize = 12;
    let counted = ["sdcc, by the next eviction", "sampled", "in compressed", "diverging"];
    let measured =
        ["KL sum", "KL max", "total variation mean", "mean at most", "max", "max at most"];
    let mut table = output::table(
        counted.into_iter().chain(measured).chain(["loss at most", "gradient at most"]),
    );
    for junction in certificate.junctions.iter().take(SHOWN) {
        let name = junction
            .junction
            .map_or_else(|| "  none".to_string(), |context| format!("  context {context}"));
        table.add_row(row(name, junction));
    }
    table.add_row(row("  all".to_string(), &certificate.all));
    output::line(table.trim_fmt())?;
    if certificate.junctions.len() > SHOWN {
        output::line(format!(
            "  ... and {} more",
            output::size(certificate.junctions.len() - SHOWN)
        ))?;
    }
    output::line(format!(
        "loss and gradient: the largest error of their sums over the diverging terms where advantages lie within {A_MAX} of 0"
    ))?;
    if certificate
        .junctions
        .iter()
        .any(|junction| junction.junction.is_none() && junction.coverage.diverging > 0)
    {
        output::line(
            "none: terms that no eviction follows; those that diverge do so by what a chat template leaves out later",
        )?;
    }
    let untrained = certificate.all.coverage.untrained();
    let (untrained, sampled) =
        (output::size(untrained), output::size(certificate.all.coverage.sampled));
    output::line(format!(
        "{untrained} of {sampled} sampled tokens are not in the compressed walk: sdcc does not train them"
    ))
}

/// Means and maxima of the total variation beside what the KL bounds them by.
fn row(name: String, junction: &JunctionCertificate) -> [String; 12] {
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
        nats(junction.loss_bound(A_MAX)),
        nats(junction.gradient_bound(A_MAX)),
    ]
}
