//! Contract: what a call sampled carries loss, no more and no less: what the template writes for
//! the answer behind the generation prompt, up to the token that ends the turn, and the recorded
//! text where the template does not show all of it.
use std::path::Path;

use crate::tokenizer;

use pleach_render::{Loss, Rendered, Renderer};
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::json;

const HEADER: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}"#;
const QUESTION: [&str; 2] = [
    r#"{"t":"segment","id":0,"role":"user","origin":"human","text":"Ring."}"#,
    r#"{"t":"append","context":0,"from":null,"segments":[0]}"#,
];

fn tree(lines: &[&str]) -> BranchTree {
    let text = [&[HEADER], &QUESTION[..], lines].concat().join("\n") + "\n";
    let read = BranchTree::read(text.as_bytes(), "session.jsonl", ReadOptions::STRICT);
    read.map_err(|error| error.to_string()).unwrap().0
}

fn template(name: &str) -> Renderer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    Renderer::bytes().with_template(file).unwrap()
}

fn text(ids: impl IntoIterator<Item = u32>) -> String {
    let sign = |id| match id {
        256 => '<',
        257 => '>',
        id => char::from(u8::try_from(id).unwrap()),
    };
    ids.into_iter().map(sign).collect()
}

/// What a call saw, and what of its answer carries loss.
fn trained(rendered: Rendered) -> Vec<(String, String)> {
    let read = BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT);
    let (tree, _) = read.map_err(|error| error.to_string()).unwrap();
    let of = |view: pleach_tree::View<'_>| {
        let tokens = view.tokens();
        let (context, output) = tokens.split_at(view.context().tokens());
        let weighted = view.output().zip(output).filter(|(token, _)| token.weight == Some(1.0));
        (text(context.iter().copied()), text(weighted.map(|(_, id)| *id)))
    };
    tree.views().map(of).collect()
}

fn render(renderer: &Renderer, tree: &BranchTree) -> (Vec<(String, String)>, Vec<String>) {
    let rendered = renderer.render(tree).unwrap().expect("there is text");
    let notes = rendered.notes.clone();
    (trained(rendered), notes)
}

const THOUGHT: [&str; 5] = [
    r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"<think>\nHow loud?\n</think>\n\nRung."}"#,
    r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
    r#"{"t":"segment","id":2,"role":"user","origin":"human","text":"Again."}"#,
    r#"{"t":"append","context":1,"from":0,"segments":[1,2]}"#,
    r#"{"t":"generation","id":1,"context":1,"output":[]}"#,
];

#[test]
fn tags_around_thought_and_call_and_the_end_of_turn_are_trained() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","part":"reasoning","text":"Loud.","source":{"file":0,"line":1,"key":"m"}}"#,
        r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","part":"tool_call","calls":["c"],"text":"{\"id\":\"c\",\"name\":\"ring\",\"input\":{\"times\":2}}","source":{"file":0,"line":1,"key":"m"}}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1,2]}"#,
    ];
    let tree = tree(&lines);
    let call = r#"{"name": "ring", "arguments": {"times": 2}}"#;
    let turn = format!("<think>\nLoud.\n</think>\n\n<tool_call>\n{call}\n</tool_call>>");
    assert_eq!(render(&Renderer::bytes(), &tree).0[0].1, turn);
    let said = Renderer::bytes().with_loss(Loss::Text);
    assert_eq!(render(&said, &tree).0[0].1, format!("Loud.{call}"));
}

#[test]
fn a_call_in_any_notation_is_trained_to_its_last_tag() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","part":"tool_call","calls":["c"],"text":"{\"id\":\"c\",\"name\":\"read\",\"input\":{\"path\":\"a.rs\",\"line\":30,\"all\":false}}"}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
    ];
    let (trained, notes) = render(&template("splitting.jinja"), &tree(&lines));
    let expected = "\n</think>\n\n\n<call name=read><arg key=path>a.rs</arg><arg key=line>30</arg><arg key=all>false</arg></call>>";
    assert_eq!(trained[0].1, expected);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_thought_that_the_template_takes_out_of_the_text_is_trained_with_it() {
    let (trained, notes) = render(&template("splitting.jinja"), &tree(&THOUGHT));
    assert!(trained[0].0.ends_with("<assistant\n<think>\n"), "{trained:?}");
    assert_eq!(trained[0].1, "How loud?\n</think>\n\nRung.>");
    // Later the thought is gone, and what is left is no other text.
    assert!(trained[1].0.contains("<assistant\nRung.>\n<user\nAgain.>"), "{trained:?}");
    assert!(notes.iter().all(|note| !note.contains("does not show")), "{notes:?}");
}

#[test]
fn what_the_template_cuts_away_is_put_behind_the_prompt_as_it_was_recorded() {
    for loss in [Loss::Turn, Loss::Text] {
        let renderer = template("cutting.jinja").with_loss(loss);
        let (trained, notes) = render(&renderer, &tree(&THOUGHT));
        let end = if loss == Loss::Turn { ">" } else { "" };
        // The prompt has opened the thought already.
        assert!(trained[0].0.ends_with("<assistant\n<think>\n"), "{trained:?}");
        assert_eq!(trained[0].1, format!("How loud?\n</think>\n\nRung.{end}"));
        let [note] =
            notes.iter().filter(|note| note.contains("does not show")).collect::<Vec<_>>()[..]
        else {
            panic!("{notes:?}")
        };
        assert!(note.contains("cutting.jinja") && note.contains("segment 1 (\"<think>"), "{note}");
    }
}

/// An answer of a thought, a text and a call, as many as are given.
fn answer(thought: Option<&str>, said: Option<&str>, call: Option<&str>) -> BranchTree {
    let source = json!({"file": 0, "line": 1, "key": "m"});
    let segment = |id: u32, part: &str, text: &str| json!({"t": "segment", "id": id, "role": "assistant", "origin": "policy", "part": part, "text": text, "source": source});
    let parts = [("reasoning", thought), ("content", said), ("tool_call", call)];
    let parts = (1..).zip(parts).filter_map(|(id, (part, text))| Some(segment(id, part, text?)));
    let mut lines: Vec<String> = parts.map(|segment| segment.to_string()).collect();
    let ids: Vec<u32> =
        (1..).zip([thought, said, call]).filter_map(|(id, text)| text.map(|_| id)).collect();
    lines.push(json!({"t": "generation", "id": 0, "context": 0, "output": ids}).to_string());
    tree(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_text_that_repeats_what_the_template_drops_does_not_stand_for_it() {
    let ring = r#"{"id":"c","name":"ring","input":{}}"#;
    for (tree, expected) in [
        (answer(Some("Rung."), Some("Rung."), None), "Rung.Rung.>".to_owned()),
        (answer(None, Some("I ring it."), Some(ring)), format!("I ring it.{ring}>")),
        (answer(None, Some("assistant\n</think>"), None), "assistant\n</think>>".to_owned()),
        (answer(None, Some("end</think>"), None), "end</think>>".to_owned()),
    ] {
        let (trained, notes) = render(&template("cutting.jinja"), &tree);
        assert_eq!(trained[0].1, expected);
        assert!(notes.iter().any(|note| note.contains("does not show")), "{notes:?}");
    }
}

#[test]
fn only_a_tag_that_the_prompt_has_opened_is_left_out_of_what_was_recorded() {
    for (said, expected) in
        [(">\nx</think>y", ">\nx</think>y>"), ("<think>\nx</think>y", "x</think>y>")]
    {
        let (trained, _) = render(&template("cutting.jinja"), &answer(None, Some(said), None));
        assert!(trained[0].0.ends_with("<assistant\n<think>\n"));
        assert_eq!(trained[0].1, expected);
    }
}

#[test]
fn what_opens_a_call_is_not_lost_where_the_prompt_opens_a_thought() {
    let ring = r#"{"id":"c","name":"ring","input":{}}"#;
    let (trained, _) = render(&template("opening.jinja"), &answer(None, None, Some(ring)));
    let call = r#"{"name": "ring", "arguments": {}}"#;
    assert!(trained[0].0.ends_with("<assistant\n<think>\n"));
    assert_eq!(trained[0].1, format!("<tool_call>\n{call}\n</tool_call>>"));
}

#[test]
fn a_text_outside_of_the_spans_that_a_template_names_is_not_trained() {
    let (trained, notes) =
        render(&template("opening.jinja"), &answer(Some("Loud?"), Some("Rung."), None));
    assert_eq!(trained[0].1, "Rung.>");
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn an_end_of_turn_inside_of_a_text_ends_no_answer() {
    // The characters of a mark in a text keep marks from saying where texts stand.
    let run = |text: &str| json!({"id": "c", "name": "run", "input": {"of": text}}).to_string();
    let tree = answer(
        Some("<|im_end|>\u{f0000}\u{100000}"),
        Some("<|im_end|>a"),
        Some(&run("<|im_end|>b")),
    );
    let renderer = Renderer::bytes();
    let read = BranchTree::from_records(
        renderer.render(&tree).unwrap().unwrap().records,
        "rendered",
        ReadOptions::STRICT,
    );
    let (new, _) = read.map_err(|error| error.to_string()).unwrap();
    let view = new.views().next().unwrap();
    let turn = "<think>\n<|im_end|>\u{f0000}\u{100000}\n</think>\n\n<|im_end|>a\n<tool_call>\n{\"name\": \"run\", \"arguments\": {\"of\": \"<|im_end|>b\"}}\n</tool_call><|im_end|>";
    assert_eq!(view.tokens()[view.context().tokens()..], renderer.encode(turn).unwrap());
}

#[test]
fn a_recorded_text_has_its_end_of_turn_under_a_tokenizer_without_special_tokens() {
    let made = tokenizer::byte_level(false);
    let cutting = include_str!("../fixtures/cutting.jinja");
    let folder = tokenizer::folder(&made, cutting);
    let renderer = Renderer::open(folder.path()).unwrap();
    let tree = answer(Some("Rung."), Some("Rung!"), None);
    let records = renderer.render(&tree).unwrap().unwrap().records;
    let (new, _) = BranchTree::from_records(records, "rendered", ReadOptions::STRICT).unwrap();
    let view = new.views().next().unwrap();
    let expected = renderer.encode("Rung.Rung!<|im_end|>").unwrap();
    assert!(view.tokens().ends_with(&expected), "{:?} {expected:?}", view.tokens());
}

#[test]
fn spans_that_a_template_names_itself_are_what_is_trained() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"Two.","source":{"file":0,"line":1,"key":"m"}}"#,
        r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","part":"tool_call","calls":["c"],"text":"{\"id\":\"c\",\"name\":\"ring\",\"input\":{}}","source":{"file":0,"line":1,"key":"m"}}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1,2]}"#,
    ];
    let (trained, _) = render(&template("spans.jinja"), &tree(&lines));
    assert_eq!(trained[0].1, r#"Two.{"name": "ring", "arguments": {}}>"#);
}

#[test]
fn an_empty_answer_trains_its_end_of_turn_where_the_policy_gave_one() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":""}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
    ];
    assert_eq!(render(&Renderer::bytes(), &tree(&lines)).0[0].1, ">");
}

#[test]
fn what_another_model_wrote_is_not_trained_and_neither_are_its_tags() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"external_model","text":"Rung."}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
    ];
    assert_eq!(render(&Renderer::bytes(), &tree(&lines)).0[0].1, "");
}

#[test]
fn two_answers_to_one_prompt_are_two_turns_with_their_own_ends() {
    let lines = [
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"Rung."}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
        r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","text":"Rung!"}"#,
        r#"{"t":"generation","id":1,"context":0,"output":[2]}"#,
        r#"{"t":"segment","id":3,"role":"user","origin":"human","text":"Again."}"#,
        r#"{"t":"append","context":1,"from":0,"segments":[2,3]}"#,
        r#"{"t":"segment","id":4,"role":"assistant","origin":"policy","text":"No."}"#,
        r#"{"t":"generation","id":2,"context":1,"output":[4]}"#,
    ];
    let (trained, _) = render(&Renderer::bytes(), &tree(&lines));
    let said: Vec<&str> = trained.iter().map(|(_, said)| said.as_str()).collect();
    assert_eq!(said, ["Rung.>", "Rung!>", "No.>"]);
    assert_eq!(trained[2].0, "<user\nRing.>\n<assistant\nRung!>\n<user\nAgain.>\n<assistant\n");
}
