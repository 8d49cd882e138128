//! A page holds all it shows, loads nothing, takes no markup from a file, and stays light however
//! long the rollout.
use pleach_layout::{Era, Layouts};
use pleach_picture::{Picture, PictureOptions, Theme};
use pleach_tree::{BranchTree, ReadOptions};

use super::{
    Equivalence, EvictionRow, Fact, Gap, Gaps, LayoutRow, Mask, Page, Per, Rollout, brief, grouped,
    render,
};

const RECORDS: &str = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1,2]}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[3,4]}
{"t":"generation","id":0,"context":0,"output":[1]}
{"t":"append","context":1,"from":0,"segments":[1]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":0}],"by":{"kind":"rule","name":"</script><b>trim"},"trigger":"auto"}
{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[5]}
{"t":"generation","id":1,"context":2,"output":[2]}
"#;

fn tree() -> BranchTree {
    BranchTree::read(RECORDS.as_bytes(), "a&b.jsonl", ReadOptions::STRICT).unwrap().0
}

fn row(name: &str, exact: bool) -> LayoutRow {
    LayoutRow {
        name: name.into(),
        exact,
        passes: 1,
        tokens: 12_345,
        pairs: 76_205_685,
        supervised: 3,
        coverage: if exact { 1.0 } else { 0.625 },
        missing: Per {
            mean: if exact { 0.0 } else { 1.25 },
            max: if exact { 0.0 } else { 4321.0 },
        },
        leaked: Per { mean: 0.0, max: 0.0 },
        gap: (!exact).then_some(Gap { mean: 0.0612, max: 4.9, signed: -0.0004 }),
    }
}

const EXACT: [(u32, u32, f64); 3] = [(0, 0, -1.0), (0, 1, -2.0), (1, 0, -0.5)];

fn page() -> Page {
    let tree = tree();
    let layouts = Layouts::new(&tree).unwrap();
    let evictions = layouts.account().unwrap().evictions;
    let options = PictureOptions { theme: Theme::Auto, ..PictureOptions::default() };
    let picture = Picture::new(&layouts, &layouts.packed().unwrap(), &options).unwrap();
    let compressed = [(1, 0, -0.25)];
    let full = [(1, 0, -1.5), (0, 0, -1.0), (0, 1, -2.0)];
    Page {
        file: "a&b.jsonl".into(),
        facts: vec![Fact::new("model", "seeded <decoder>")],
        notices: vec!["clipped".into()],
        layouts: vec![row("packed", true), row("compressed", false)],
        equivalence: Some(Equivalence {
            against: "segments".into(),
            max_logp_difference: 3.1e-15,
            relative_gradient_error: 2e-13,
            dtype: "f64".into(),
            holds: true,
        }),
        rollouts: vec![Rollout {
            name: "r0".into(),
            evictions: 1,
            layouts: vec![row("packed", true)],
        }],
        gaps: Some(
            Gaps::new(&EXACT)
                .with("compressed", &EXACT, &compressed)
                .with("full", &EXACT, &full)
                .marked(&layouts.eras(), &evictions),
        ),
        mask: Some(Mask::new(&picture).unwrap()),
        evictions: evictions.iter().map(EvictionRow::new).collect(),
    }
}

#[test]
fn the_page_shows_the_table_the_gap_the_mask_and_the_evictions() {
    let html = render(&page()).unwrap();
    let mut shown = html.clone();
    for (from, to) in [("<style>", "</style>"), ("<svg", "</svg>"), ("<script>", "</script>")] {
        while let Some(start) =
            shown.find(from).filter(|start| !shown[*start..].starts_with(&format!("{from}…")))
        {
            let end = start + shown[start..].find(to).unwrap();
            shown.replace_range(
                start..end + to.len(),
                &format!("[{}]", &from[1..].trim_end_matches('>')),
            );
        }
    }
    insta::assert_snapshot!(shown.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn what_a_file_says_is_never_markup() {
    let html = render(&page()).unwrap();
    assert!(html.contains("<h1>a&amp;b.jsonl</h1>"));
    assert!(html.contains("seeded &lt;decoder&gt;"));
    assert!(!html.contains("<b>trim") && !html.contains("</script><b>"));
    assert_eq!(html.matches("</script>").count(), 2, "only the page's own script elements end");
}

#[test]
fn the_page_loads_nothing() {
    let html = render(&page()).unwrap();
    assert!(html.contains("default-src 'none'"));
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http:") && !outside.contains("https:") && !outside.contains("url("));
}

#[test]
fn a_page_without_a_model_has_no_chart_and_no_gap_columns() {
    let mut page = page();
    page.gaps = None;
    page.equivalence = None;
    page.layouts.iter_mut().for_each(|row| row.gap = None);
    let html = render(&page).unwrap();
    assert!(!html.contains("gap-data") && !html.contains("log-probability gap"));
    assert!(html.contains("<h2>Layouts</h2>") && html.contains("<h2>Mask</h2>"));
}

#[test]
fn gaps_are_matched_by_token_and_signed_towards_the_training_context() {
    let data: serde_json::Value = serde_json::from_str(&page().gaps.unwrap().data()).unwrap();
    assert_eq!(data["step"], 1);
    assert_eq!(data["first"], serde_json::json!([[0, 0], [0, 1], [1, 0]]));
    assert_eq!(data["series"][0]["signed"], serde_json::json!([null, null, 0.25]));
    assert_eq!(data["series"][0]["trained"], serde_json::json!([0, 0, 1]));
    assert_eq!(data["series"][1]["signed"], serde_json::json!([0.0, 0.0, -1.0]));
    assert_eq!(data["series"][1]["max"], serde_json::json!([0.0, 0.0, 1.0]));
}

#[test]
fn an_eviction_stands_at_the_first_token_sampled_after_it() {
    let data: serde_json::Value = serde_json::from_str(&page().gaps.unwrap().data()).unwrap();
    assert_eq!(data["marks"][0]["at"], 2);
    assert_eq!(
        data["marks"][0]["label"],
        "context 2: evict; 2 of 4 tokens out, 0 in, by rule </script><b>trim"
    );
}

#[test]
fn a_hundred_thousand_terms_share_places_and_keep_their_maximum() {
    let exact: Vec<(u32, u32, f64)> = (0..100_000).map(|at| (at / 100, at % 100, -1.0)).collect();
    let mut full = exact.clone();
    full[54_321].2 = 3.5;
    let gaps = Gaps::new(&exact).with("full", &exact, &full).marked(&[] as &[Era], &[]);
    let text = gaps.data();
    assert!(text.len() < 200_000, "{}", text.len());
    let data: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(data["step"], 67);
    let max: Vec<f64> = serde_json::from_value(data["series"][0]["max"].clone()).unwrap();
    let mean: Vec<f64> = serde_json::from_value(data["series"][0]["mean"].clone()).unwrap();
    assert_eq!(max.len(), 1493);
    assert_eq!((max[54_321 / 67], max.iter().sum::<f64>()), (4.5, 4.5));
    assert!((mean[54_321 / 67] - 4.5 / 67.0).abs() < 1e-4);
}

#[test]
fn a_heavy_mask_is_an_image_inside_the_page() {
    let page = Page { mask: Some(Mask::Png(vec![1, 2, 3])), ..page() };
    assert!(render(&page).unwrap().contains("src=\"data:image/png;base64,AQID\""));
}

#[test]
fn numbers_are_written_to_be_read() {
    assert_eq!(
        [grouped(0), grouped(999), grouped(1_234_567), grouped(-1000)],
        ["0", "999", "1,234,567", "−1,000"]
    );
    assert_eq!(
        [brief(0.0), brief(0.06), brief(-1.5), brief(61.25), brief(3.1e-15)],
        ["0", "0.06", "−1.5", "61.2", "3.1e−15"]
    );
}
