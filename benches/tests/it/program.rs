//! Contract: `pleach-bench` says for what its figures hold, has a row for every problem, length,
//! way and pass, tells why a row has no time, and keeps its keys, whose names carry the unit. No
//! test looks at a time.

use crate::run::{failure, json, stdout};
use serde_json::Value;

const SMALL: [&str; 12] = [
    "--tokens",
    "96,130",
    "--heads",
    "2",
    "--kv-heads",
    "1",
    "--head-dim",
    "16",
    "--repeats",
    "2",
    "--product",
    "32",
];

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn rows(report: &Value, key: &str) -> Vec<Value> {
    report[key].as_array().unwrap().clone()
}

#[test]
fn json_holds_the_environment_and_a_row_for_every_way_and_pass() {
    let report = json(
        &[&SMALL[..], &["--problem", "fold,causal", "--memory-tokens", "300", "--json"]].concat(),
    );
    insta::assert_snapshot!("keys", shape(&report));
    let rows = rows(&report, "rows");
    assert_eq!(rows.len(), 2 * 2 * 4 * 2, "lengths, problems, ways and passes");
    for row in &rows {
        let is_the_path = row["problem"] == "causal" && row["way"] == "causal_equal_pairs";
        assert_eq!(row["skipped"].is_string(), is_the_path, "{row}");
        assert_eq!(row["time_s"].is_null(), is_the_path, "{row}");
        assert_eq!(
            row["backward_difference_s"].is_number(),
            row["pass"] == "forward_backward" && !is_the_path,
            "{row}"
        );
        assert!(
            is_the_path
                || row["time_s"].as_f64().unwrap() > 0.0 && row["rate"].as_f64().unwrap() > 0.0,
            "{row}"
        );
        assert!(
            row["least_s"].as_f64() <= row["time_s"].as_f64()
                && row["time_s"].as_f64() <= row["greatest_s"].as_f64()
        );
    }
}

#[test]
fn visible_pairs_and_tiles_are_those_of_the_problem() {
    let report = json(&[&SMALL[..], &["--problem", "causal", "--json"]].concat());
    let pairs: Vec<u64> =
        rows(&report, "rows").iter().map(|row| row["pairs"].as_u64().unwrap()).collect();
    assert!(pairs.contains(&(96 * 97 / 2)) && pairs.contains(&(130 * 131 / 2)), "{pairs:?}");
    let schedule = rows(&report, "schedule");
    let tokens: Vec<u64> = schedule.iter().map(|row| row["tokens"].as_u64().unwrap()).collect();
    assert_eq!(tokens, [96, 130, 131_072]);
    assert!(schedule.iter().all(|row| row["live_tiles"].as_u64() >= row["partial_tiles"].as_u64()));
    assert!(schedule.iter().all(|row| row["block_overhead"].as_f64().unwrap() >= 1.0));
}

#[test]
fn the_training_step_names_regimes_and_the_ideal_ratio() {
    let step = ["--problem", "fold", "--step", "--step-tokens", "192", "--json"];
    let report = json(&[&SMALL[..], &step].concat());
    let rows = rows(&report, "step");
    let regimes: Vec<&str> = rows.iter().map(|row| row["regime"].as_str().unwrap()).collect();
    assert_eq!(regimes, ["summary-fold", "cleared-results", "group"]);
    for row in &rows {
        let [tokens, pairs] = ["tokens", "pairs"].map(|count| {
            let of = |layout: &str| row[format!("{layout}_{count}")].as_u64().unwrap() as f64;
            of("segments") / of("packed")
        });
        let ideal = row["ideal_ratio"].as_f64().unwrap();
        assert!(ideal > 1.0 && ideal <= tokens.max(pairs), "{row}");
    }
    insta::assert_snapshot!("step-keys", keys(&rows[0]).join(" "));
}

#[test]
fn the_page_says_machine_threads_dtype_command_and_method() {
    let page = stdout(&[&SMALL[..], &["--problem", "fold", "--markdown"]].concat());
    for part in [
        "# Benches",
        "`pleach-bench --tokens 96,130",
        "threads",
        "f32",
        "product",
        "## Schedule",
        "## Beside PyTorch",
        "| fold | tree attention |",
    ] {
        assert!(page.contains(part), "{part} is missing in:\n{page}");
    }
    let ragged =
        page.lines().filter(|line| line.starts_with('|')).find(|line| !line.ends_with('|'));
    assert_eq!(ragged, None);
}

#[test]
fn unknown_problems_and_heads_that_do_not_divide_are_bad_input() {
    let (status, message) = failure(&["--problem", "spiral"]);
    assert_eq!(status, 2);
    assert!(message.contains("spiral") && message.contains("cleared-results"), "{message}");
    let (status, message) = failure(&["--heads", "6", "--kv-heads", "4"]);
    assert_eq!((status, message.contains("--kv-heads")), (2, true), "{message}");
    let (status, message) = failure(&["--tokens", "0"]);
    assert_eq!((status, message.contains("from 1")), (2, true), "{message}");
}

#[test]
fn sizes_that_no_memory_holds_are_bad_input() {
    for (option, size, most) in [
        ("--heads", "1000000000000", "65536"),
        ("--head-dim", "1000000", "65536"),
        ("--product", "1000000", "32768"),
    ] {
        let (status, message) = failure(&[option, size]);
        assert_eq!((status, message.contains(most)), (2, true), "{message}");
    }
    let (status, message) =
        failure(&["--heads", "65536", "--head-dim", "65536", "--tokens", "16777216"]);
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("are free") && message.contains("--head-dim"), "{message}");
}

#[test]
fn help_is_what_it_was() {
    insta::assert_snapshot!("help", stdout(&["--help"]));
}

/// Every key of the report, rows by their first.
fn shape(report: &Value) -> String {
    let nested = ["environment", "rows", "schedule", "memory"].map(|part| {
        let value = &report[part];
        let first = value.as_array().map_or(value, |rows| &rows[0]);
        format!("{part}: {}", keys(first).join(" "))
    });
    [keys(report).join(" ")].into_iter().chain(nested).collect::<Vec<_>>().join("\n")
}
