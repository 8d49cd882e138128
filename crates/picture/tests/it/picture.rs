//! A mask's picture says what the layout says: pairs counted exactly, cells, ids and evictions
//! readable, labels never in each other's way.
use std::num::NonZeroU32;
use std::path::Path;

use base64::Engine;
use pleach_layout::{Layout, LayoutKind, Layouts};
use pleach_picture::{Bins, Coverage, Picture, PictureError, PictureOptions, Theme, Tile};
use pleach_tree::{BranchTree, ReadOptions};
use proptest::prelude::*;

/// A system prompt, two tool turns, and an eviction of the first result with a placeholder behind
/// which a turn survives.
fn tree(cache: &str, result: usize) -> BranchTree {
    let tokens: Vec<usize> = (100..100 + result).collect();
    let records = format!(
        r#"{{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"{cache}"}}
{{"t":"segment","id":0,"role":"system","origin":"harness","tokens":[1,2]}}
{{"t":"append","context":0,"from":null,"segments":[0]}}
{{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[3]}}
{{"t":"generation","id":0,"context":0,"output":[1]}}
{{"t":"segment","id":2,"role":"tool","origin":"environment","tokens":{tokens:?}}}
{{"t":"append","context":1,"from":0,"segments":[1,2]}}
{{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[6]}}
{{"t":"generation","id":1,"context":1,"output":[3]}}
{{"t":"append","context":2,"from":1,"segments":[3]}}
{{"t":"segment","id":4,"role":"tool","origin":"harness","tokens":[7]}}
{{"t":"evict","context":3,"from":2,"evicted":[{{"segment":2}}],"replacement":{{"kind":"placeholder","segments":[4]}},"by":{{"kind":"rule","name":"clear & go"}}}}
{{"t":"segment","id":5,"role":"assistant","origin":"policy","tokens":[8,9]}}
{{"t":"generation","id":2,"context":3,"output":[5]}}
"#
    );
    BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT).unwrap().0
}

fn draw(tree: &BranchTree, kind: LayoutKind, options: &PictureOptions) -> (Layout, Picture) {
    let layouts = Layouts::new(tree).unwrap();
    let layout = layouts.layout(kind).unwrap();
    let picture = Picture::new(&layouts, &layout, options).unwrap();
    (layout, picture)
}

/// Which pairs are visible, by the rule itself.
fn visible(ends: &[i32], row: usize, key: usize) -> bool {
    key <= row && (row as i32) < ends[key]
}

/// A text element's box, measured with the letters of the PNG.
struct Label {
    text: String,
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
}

fn advance(face: &ttf_parser::Face<'_>, letter: char) -> u32 {
    face.glyph_index(letter).and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap().into()
}

fn labels(svg: &str) -> Vec<Label> {
    let face = ttf_parser::Face::parse(dejavu::sans::regular(), 0).unwrap();
    let document = roxmltree::Document::parse(svg).unwrap();
    let label = |node: roxmltree::Node<'_, '_>| {
        let number = |name: &str| node.attribute(name).unwrap().parse::<f32>().unwrap();
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let text = node.text().unwrap().to_string();
        let units: u32 = text.chars().map(|letter| advance(&face, letter)).sum();
        let long = units as f32 * size / f32::from(face.units_per_em());
        let back = match node.attribute("text-anchor") {
            Some("middle") => long / 2.0,
            Some("end") => long,
            _ => 0.0,
        };
        let high = size * 0.7;
        if node.has_attribute("transform") {
            Label { text, left: x - high, right: x, top: y + back - long, bottom: y + back }
        } else {
            Label { text, left: x - back, right: x - back + long, top: y - high, bottom: y }
        }
    };
    document.descendants().filter(|node| node.has_tag_name("text")).map(label).collect()
}

fn assert_apart(svg: &str, name: &str) {
    let labels = labels(svg);
    for (at, a) in labels.iter().enumerate() {
        for b in &labels[at + 1..] {
            let over = a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
            assert!(!over, "{name}: {:?} and {:?} overlap", a.text, b.text);
        }
    }
}

#[test]
fn a_small_packed_mask_shows_cells_ids_branches_and_the_eviction() {
    let (_, picture) = draw(&tree("reprefill", 2), LayoutKind::Packed, &PictureOptions::default());
    insta::assert_snapshot!(picture.svg().unwrap());
}

#[test]
fn text_of_records_is_escaped() {
    let options = PictureOptions { title: Some("a<b".into()), ..PictureOptions::default() };
    let svg = draw(&tree("reprefill", 2), LayoutKind::Packed, &options).1.svg().unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    assert!(texts.iter().any(|text| text.starts_with("a<b")));
    assert!(texts.iter().any(|text| text.contains("by rule clear & go")));
}

#[test]
fn evicted_keys_are_marked_in_the_rows_that_live_without_them() {
    let marked = |cache: &str, kind: LayoutKind| {
        let options = PictureOptions { labels: false, ..PictureOptions::default() };
        let (layout, picture) = draw(&tree(cache, 2), kind, &options);
        let svg = picture.svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let number = |node: roxmltree::Node<'_, '_>, name: &str| {
            node.attribute(name).unwrap().parse::<f32>().unwrap()
        };
        let of_class = |class: &str| {
            let rects = document
                .descendants()
                .filter(|node| node.has_tag_name("rect") && node.attribute("class") == Some(class));
            rects
                .map(|node| ["x", "y", "width", "height"].map(|name| number(node, name)))
                .collect::<Vec<_>>()
        };
        let ground = of_class("pleach-ground")[0];
        let cell = ground[2] / layout.tokens() as f32;
        let evicted: Vec<[f32; 4]> = of_class("pleach-eviction")
            .into_iter()
            .filter(|rect| rect[2] >= cell && rect[3] >= cell)
            .collect();
        assert_eq!(evicted.len(), 1, "{cache} {}", kind.name());
        let [x, y, width, height] = evicted[0];
        [(x - ground[0]) / cell, (y - ground[1]) / cell, width / cell, height / cell]
            .map(|tokens| tokens.round() as usize)
    };
    // The result stands at keys 3 and 4; the branch behind the placeholder is rows 6 to 9.
    assert_eq!(marked("reprefill", LayoutKind::Packed), [3, 6, 2, 4]);
    // In place, everything from the placeholder on lives without it.
    assert_eq!(marked("kv_evict", LayoutKind::Packed), [3, 6, 2, 3]);
    // The flattening goes on seeing it.
    assert_eq!(marked("reprefill", LayoutKind::Full), [3, 6, 2, 3]);
}

#[test]
fn a_shaded_mask_is_as_opaque_as_its_pairs_are_visible() {
    for cache in ["reprefill", "kv_evict"] {
        let options = PictureOptions { side: 64, scale: 1, ..PictureOptions::default() };
        let (layout, picture) = draw(&tree(cache, 250), LayoutKind::Packed, &options);
        let svg = picture.svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let image = document.descendants().find(|node| node.has_tag_name("image")).unwrap();
        let data = image.attribute("href").unwrap().strip_prefix("data:image/png;base64,").unwrap();
        let data = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        let pixels = tiny_skia::Pixmap::decode_png(&data).unwrap();
        let ends = &layout.sequences[0].ends;
        assert_eq!(pixels.width(), 64);
        let edge = |cell: usize| cell * ends.len() / 64;
        for row in 0..64 {
            for key in 0..64 {
                let pairs = (edge(row)..edge(row + 1))
                    .flat_map(|row| (edge(key)..edge(key + 1)).map(move |key| (row, key)));
                let seen: Vec<bool> = pairs.map(|(row, key)| visible(ends, row, key)).collect();
                let part = seen.iter().filter(|seen| **seen).count() as f64 / seen.len() as f64;
                let alpha = pixels.pixel(key as u32, row as u32).unwrap().alpha();
                let expected = (part * 0.62 * 255.0).round();
                assert!(
                    (f64::from(alpha) - expected).abs() <= 1.0,
                    "{cache} row {row} key {key}: {alpha} for {part}"
                );
            }
        }
    }
}

#[test]
fn a_png_has_the_size_of_the_picture_and_its_ground_where_nothing_is_visible() {
    let (_, picture) = draw(
        &tree("reprefill", 2),
        LayoutKind::Packed,
        &PictureOptions { scale: 3, ..Default::default() },
    );
    let pixels = tiny_skia::Pixmap::decode_png(&picture.png().unwrap()).unwrap();
    let (width, height) = picture.size();
    assert_eq!(
        (pixels.width(), pixels.height()),
        ((width * 3.0).ceil() as u32, (height * 3.0).ceil() as u32)
    );
    let corner = pixels.pixel(0, 0).unwrap();
    assert_eq!([corner.red(), corner.green(), corner.blue()], [255, 255, 255]);
}

#[test]
fn a_picture_that_follows_the_reader_has_both_themes() {
    let options = PictureOptions { theme: Theme::Auto, ..PictureOptions::default() };
    let svg = draw(&tree("reprefill", 2), LayoutKind::Packed, &options).1.svg().unwrap();
    assert!(svg.contains("@media(prefers-color-scheme:dark)"));
}

#[test]
fn a_sequence_that_is_not_there_and_a_size_that_is_none_are_errors() {
    let tree = tree("reprefill", 2);
    let layouts = Layouts::new(&tree).unwrap();
    let layout = layouts.segments().unwrap();
    let wrong = PictureOptions { sequence: Some(2), ..PictureOptions::default() };
    let error = Picture::new(&layouts, &layout, &wrong).unwrap_err();
    assert_eq!(error, PictureError::NoSequence { index: 2, sequences: 2 });
    let small = PictureOptions { side: 8, ..PictureOptions::default() };
    let error = Picture::new(&layouts, &layout, &small).unwrap_err();
    assert_eq!(error, PictureError::PictureSize { side: 8, scale: 2 });
}

#[test]
fn arrays_that_do_not_fit_together_are_an_error() {
    let tree = tree("reprefill", 2);
    let layouts = Layouts::new(&tree).unwrap();
    let mut layout = layouts.packed().unwrap();
    layout.sequences[0].ends.pop();
    let error = Picture::new(&layouts, &layout, &PictureOptions::default()).unwrap_err();
    assert!(matches!(error, PictureError::Layout(_)), "{error}");
}

#[test]
fn a_layout_without_tokens_and_an_eviction_behind_the_last_token_are_drawn() {
    let header =
        r#"{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"CACHE"}"#;
    let last = r#"{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1]}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[2]}
{"t":"generation","id":0,"context":0,"output":[1]}
{"t":"evict","context":1,"from":0,"evicted":[{"segment":0}]}
{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[]}
{"t":"generation","id":1,"context":1,"output":[2]}"#;
    for cache in ["reprefill", "kv_evict"] {
        for records in ["", last] {
            let records = format!("{}\n{records}\n", header.replace("CACHE", cache));
            let (tree, report) =
                BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT).unwrap();
            assert!(!report.has_errors());
            for kind in LayoutKind::ALL
                .into_iter()
                .filter(|kind| cache == "reprefill" || *kind != LayoutKind::Segments)
            {
                let tile = NonZeroU32::new(1);
                let (_, picture) =
                    draw(&tree, kind, &PictureOptions { tile, ..PictureOptions::default() });
                assert!(
                    picture.svg().unwrap().ends_with("</svg>\n")
                        && !picture.png().unwrap().is_empty()
                );
            }
        }
    }
}

#[test]
fn labels_stand_apart_in_every_layout_of_every_vector() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(entries) = folder.read_dir() else {
        eprintln!("skipped: the conformance vectors are not at {}", folder.display());
        return;
    };
    for case in entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("records.jsonl").exists())
    {
        let (tree, _) = BranchTree::open(case.join("records.jsonl"), ReadOptions::STRICT).unwrap();
        let layouts = Layouts::new(&tree).unwrap();
        for kind in LayoutKind::ALL {
            let Ok(layout) = layouts.layout(kind) else { continue };
            for side in [240, 720] {
                let options =
                    PictureOptions { side, tile: NonZeroU32::new(8), ..PictureOptions::default() };
                let svg = Picture::new(&layouts, &layout, &options).unwrap().svg().unwrap();
                assert_apart(&svg, &format!("{} {} {side}", case.display(), kind.name()));
            }
        }
    }
}

/// Interval ends as trees have them and as evictions in place make them: any death after birth,
/// padding among them.
fn ends() -> impl Strategy<Value = Vec<i32>> {
    (1_usize..60).prop_flat_map(|len| {
        (0..len).map(|token| (token as i32)..=(len as i32)).collect::<Vec<_>>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counted_pairs_are_the_visible_pairs(ends in ends(), cells in 1_usize..70, tiles in any::<bool>()) {
        let bins = if tiles { Bins::tiles(ends.len(), cells) } else { Bins::even(ends.len(), cells) };
        let coverage = Coverage::of(&ends, bins);
        prop_assert_eq!(bins.edge(bins.len()), ends.len());
        for row in 0..bins.len() {
            prop_assert!(bins.size(row) > 0);
            prop_assert!((bins.edge(row)..bins.edge(row + 1)).all(|token| bins.of(token) == row));
            for key in 0..bins.len() {
                let rows = bins.edge(row)..bins.edge(row + 1);
                let seen = rows.flat_map(|i| (bins.edge(key)..bins.edge(key + 1)).map(move |j| (i, j)));
                let seen = seen.filter(|&(i, j)| visible(&ends, i, j)).count() as u64;
                prop_assert_eq!(coverage.pairs(row, key), seen);
                let tile = match seen {
                    0 => Tile::Empty,
                    seen if seen == (bins.size(row) * bins.size(key)) as u64 => Tile::Full,
                    _ => Tile::Partial,
                };
                prop_assert_eq!(coverage.tile(row, key), tile);
            }
        }
    }
}
