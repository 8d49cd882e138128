//! `check --html`: one page that holds everything it shows, and loads nothing.
mod chart;
mod page;
#[cfg(test)]
mod tests;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, context};

pub(crate) use chart::Gaps;
pub(crate) use page::{Equivalence, EvictionRow, Fact, Gap, LayoutRow, Mask, Page, Per, Rollout};

/// The page as HTML; whatever comes from a file is escaped.
///
/// # Errors
/// A template that does not fit its data.
pub(crate) fn render(page: &Page) -> Result<String, Error> {
    let mut templates = Environment::new();
    templates.add_filter("grouped", grouped);
    templates.add_filter("brief", brief);
    templates.add_filter("count", |mean: f64| {
        if mean < 1e3 { brief(mean) } else { grouped(mean.round() as i64) }
    });
    templates.add_filter("percent", |part: f64| format!("{} %", brief(part * 100.0)));
    templates.add_template("page.html", include_str!("page.html"))?;
    let safe = |text: &str| Value::from_safe_string(text.to_string());
    templates.get_template("page.html")?.render(context! {
        page => Value::from(Serde(page)),
        version => env!("CARGO_PKG_VERSION"),
        style => safe(include_str!("style.css")),
        script => safe(include_str!("chart.js")),
        gaps => page.gaps.as_ref().map(|gaps| safe(&gaps.data())),
        mask => page.mask.as_ref().map(|mask| safe(&mask.markup())),
    })
}

/// A number with its thousands apart.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "−" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in four digits or so.
fn brief(number: f64) -> String {
    let size = number.abs();
    let text = match size {
        _ if number == 0.0 => "0".into(),
        _ if !number.is_finite() => number.to_string(),
        _ if !(1e-3..1e5).contains(&size) => format!("{number:.1e}"),
        _ if size < 10.0 => trimmed(&format!("{number:.4}")),
        _ => trimmed(&format!("{number:.1}")),
    };
    text.replace('-', "−")
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
