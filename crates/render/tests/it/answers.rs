//! Contract: whatever a policy says and a template makes of it, the answer that stands behind a
//! prompt is what the template writes there, to the end of the turn, or what was recorded; nothing
//! that was said is lost.
use std::path::Path;

use crate::messages::{messages, messages_with};
use crate::session::{Action, Session, action};

use pleach_render::Renderer;
use pleach_tree::{BranchTree, Origin, Part, ReadOptions, Segment};
use proptest::prelude::*;
use serde_json::Value;

const END: &str = "<|im_end|>";

fn template(name: &str) -> Renderer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    Renderer::bytes().with_template(file).unwrap().on_date("2025-01-02").unwrap()
}

/// Bytes as text.
fn text(ids: &[u32]) -> String {
    let mut bytes = Vec::new();
    for &id in ids {
        match (u8::try_from(id), id) {
            (Ok(byte), _) => bytes.push(byte),
            (_, 256) => bytes.extend(b"<|im_start|>"),
            _ => bytes.extend(END.as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The texts of a segment: its own, or those of the call that it is.
fn said(segment: &Segment) -> Vec<String> {
    let text = segment.text.clone().unwrap_or_default();
    if segment.part != Some(Part::ToolCall) {
        return vec![text];
    }
    let call: Value = serde_json::from_str(&text).unwrap();
    let input = call["input"].as_object().unwrap();
    let texts = input.values().filter_map(|value| value.as_str().map(str::to_owned));
    texts.chain(call["name"].as_str().map(str::to_owned)).collect()
}

/// Checks every answer of a session under a template whose turns end with [`END`].
fn check(actions: &[Action], name: &str, renderer: &Renderer) {
    let tree = Session::of(actions).tree();
    let rendered = renderer.render(&tree).unwrap().unwrap();
    let drops = rendered.notes.iter().any(|note| note.contains("does not show"));
    let moves = rendered.notes.iter().any(|note| note.contains("do not continue"));
    let read = BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT);
    let (new, _) = read.map_err(|error| error.to_string()).unwrap();
    for generation in tree.generations() {
        let view = new.view(generation.id).unwrap();
        let tokens = view.tokens();
        let (context, output) = tokens.split_at(view.context().tokens());
        let held = messages(&tree, generation.context);
        let prompt = renderer.template().render(&held, true).unwrap();
        assert!(context == renderer.encode(&prompt).unwrap(), "{name}: {}", generation.id);
        // All that was said is there, and all that is there was sampled.
        let answer = squeezed(&text(output));
        let asked = squeezed(&prompt[prompt.rfind("<|im_start|>").unwrap()..]);
        for id in &generation.output {
            let segment = tree.segment(*id).unwrap();
            for text in said(segment).iter().filter(|_| segment.origin == Origin::Policy) {
                let words = squeezed(text);
                let quoted = squeezed(&serde_json::to_string(text).unwrap());
                let quoted = &quoted[1..quoted.len() - 1];
                let shown = [words.as_str(), quoted].iter().any(|words| answer.contains(words));
                assert!(
                    shown || (asked.clone() + &answer).contains(&words),
                    "{name}: {words:?} of {answer:?}"
                );
            }
        }
        for (token, id) in view.output().zip(output) {
            let external = new.segment(token.segment).unwrap().origin == Origin::ExternalModel;
            assert_eq!(token.weight.is_none_or(|weight| weight == 0.0), external, "{name}: {id}");
        }
        let whole = messages_with(&tree, generation.context, &generation.output);
        let whole = renderer.template().render(&whole, false).unwrap();
        if drops || moves {
            continue;
        }
        let behind = whole.strip_prefix(&prompt).expect("no note says otherwise");
        let end = behind.rfind(END).unwrap() + END.len();
        assert_eq!(text(output), behind[..end], "{name}: {}", generation.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_is_what_the_template_writes_for_it(actions in prop::collection::vec(action(), 1..8)) {
        check(&actions, "chatml", &Renderer::bytes());
        for name in ["qwen.jinja", "splitting.jinja", "cutting.jinja", "early.jinja"] {
            check(&actions, name, &template(name));
        }
    }
}
