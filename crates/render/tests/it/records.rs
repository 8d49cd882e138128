//! Contract: rendered records say what happened in the words of the records they were made from;
//! what only the chat template changes is said apart, and a segment that renders to the same ids
//! stays the same segment.
use std::path::Path;

use pleach_render::{RenderError, Rendered, Renderer};
use pleach_tree::{
    BranchTree, By, ByKind, ContextId, Evicted, Fidelity, GenerationId, Origin, ReadOptions,
    Record, Segment, SegmentId, Trigger,
};

const HEADER: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}"#;

fn tree(lines: &[&str]) -> BranchTree {
    let text = [&[HEADER], lines].concat().join("\n") + "\n";
    BranchTree::read(text.as_bytes(), "session.jsonl", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

fn template(name: &str) -> Renderer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    Renderer::bytes().with_template(file).unwrap().on_date("2025-01-02").unwrap()
}

fn render(renderer: &Renderer, tree: &BranchTree) -> Rendered {
    renderer.render(tree).unwrap().expect("there is text")
}

fn strict(rendered: Rendered) -> BranchTree {
    BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

/// Bytes as text, with short signs for the special tokens and line ends.
fn text(ids: &[u32]) -> String {
    let sign = |&id: &u32| match id {
        256 => '<',
        257 => '>',
        10 => '/',
        id => char::from(u8::try_from(id).unwrap()),
    };
    ids.iter().map(sign).collect()
}

/// A segment's bytes, glue in brackets.
fn show(segment: &Segment) -> String {
    let text = text(segment.tokens.as_deref().unwrap_or_default());
    if segment.source.is_none() && segment.text.is_none() { format!("[{text}]") } else { text }
}

/// The records as one line each.
fn lines(tree: &BranchTree) -> Vec<String> {
    let name = |id: &SegmentId| show(tree.segment(*id).unwrap());
    let names = |ids: &[SegmentId]| ids.iter().map(name).collect::<Vec<_>>().join(" ");
    let entry = |entry: &Evicted| match entry.tokens {
        Some((start, end)) => format!("{}@{start}..{end}", name(&entry.segment)),
        None => name(&entry.segment),
    };
    let line = |record: &Record| {
        Some(match record {
            Record::Append(append) => {
                format!("append {}: {}", append.context.0, names(&append.segments))
            }
            Record::Evict(evict) => {
                let evicted: Vec<String> = evict.evicted.iter().map(entry).collect();
                let by = evict.by.as_ref().and_then(|by| by.name.clone()).unwrap_or_default();
                let with = evict
                    .replacement
                    .as_ref()
                    .map(|with| format!(" -> {}", names(&with.segments)))
                    .unwrap_or_default();
                format!("evict {} by {by}: {}{with}", evict.context.0, evicted.join(" "))
            }
            Record::Replace(replace) => {
                format!("replace {}: {}", replace.context.0, names(&replace.segments))
            }
            Record::Fork(fork) => format!("fork {} of {}", fork.context.0, fork.from.0),
            Record::Generation(generation) => {
                format!("generation {}: {}", generation.context.0, names(&generation.output))
            }
            _ => return None,
        })
    };
    tree.records().iter().filter_map(line).collect()
}

const TURNS: [&str; 11] = [
    r#"{"t":"segment","id":0,"role":"user","origin":"human","text":"Q","source":{"file":0,"line":1,"key":"q"}}"#,
    r#"{"t":"append","context":0,"from":null,"segments":[0]}"#,
    r#"{"t":"segment","id":1,"role":"assistant","origin":"external_model","part":"reasoning","text":"R","source":{"file":0,"line":2,"key":"m"}}"#,
    r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","text":"A","source":{"file":0,"line":2,"key":"m"}}"#,
    r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","part":"tool_call","calls":["c"],"text":"{\"id\":\"c\",\"name\":\"f\",\"input\":{}}","source":{"file":0,"line":2,"key":"m"}}"#,
    r#"{"t":"generation","id":0,"context":0,"output":[1,2,3]}"#,
    r#"{"t":"segment","id":4,"role":"tool","origin":"environment","result_of":"c","text":"T","source":{"file":0,"line":3,"key":"t"}}"#,
    r#"{"t":"append","context":1,"from":0,"segments":[1,2,3,4]}"#,
    r#"{"t":"segment","id":5,"role":"assistant","origin":"policy","text":"B","source":{"file":0,"line":4,"key":"n"}}"#,
    r#"{"t":"generation","id":1,"context":1,"output":[5]}"#,
    r#"{"t":"segment","id":6,"role":"user","origin":"human","text":"U","source":{"file":0,"line":5,"key":"u"}}"#,
];

#[test]
fn a_conversation_only_grows_where_the_template_drops_nothing() {
    let more = [
        r#"{"t":"append","context":2,"from":1,"segments":[5,6]}"#,
        r#"{"t":"generation","id":2,"context":2,"output":[]}"#,
    ];
    let tree = strict(render(&Renderer::bytes(), &tree(&[&TURNS[..], &more].concat())));
    let call = r#"{"name": "f", "arguments": {}}"#;
    assert_eq!(
        lines(&tree),
        [
            "append 0: [<user/] Q [>/<assistant/]".to_owned(),
            format!(
                "generation 0: [<think>/] R [/</think>//] A [/<tool_call>/] {call} [/</tool_call>>]"
            ),
            format!(
                "append 1: [<think>/] R [/</think>//] A [/<tool_call>/] {call} [/</tool_call>>] [/<tool/] T [>/<assistant/]"
            ),
            "generation 1: B [>]".to_owned(),
            "append 2: B [>] [/<user/] U [>/<assistant/]".to_owned(),
            "generation 2: ".to_owned(),
        ]
    );
    let sampled = |id| tree.generation(GenerationId(id)).unwrap().output.clone();
    let spans: Vec<SegmentId> =
        tree.spans(ContextId(2)).unwrap().iter().map(|span| span.segment).collect();
    assert!(
        [sampled(0), sampled(1)].concat().iter().all(|id| spans.contains(id)),
        "what was sampled stays the same segment"
    );
    let origins: Vec<Origin> =
        sampled(0).iter().map(|id| tree.segment(*id).unwrap().origin).collect();
    let p = Origin::Policy;
    assert_eq!(origins, [p, Origin::ExternalModel, p, p, p, p, p]);
}

#[test]
fn old_reasoning_leaves_by_the_rule_of_the_chat_template() {
    let more = [
        r#"{"t":"append","context":2,"from":1,"segments":[5,6]}"#,
        r#"{"t":"generation","id":2,"context":2,"output":[]}"#,
    ];
    let rendered = render(&template("qwen.jinja"), &tree(&[&TURNS[..], &more].concat()));
    assert_eq!(
        rendered.notes,
        ["the chat template rewrote earlier turns in 1 operations of their own"]
    );
    let lines = lines(&strict(rendered));
    assert_eq!(
        lines[3..],
        [
            "generation 1: [<think>//</think>//] B [>]",
            "evict 3 by chat_template: [<think>/] R [/</think>//] -> ",
            "append 2: B [>] [/<user/] U [>/<assistant/]",
            "generation 2: ",
        ],
        "{lines:#?}"
    );
}

#[test]
fn a_cleared_result_is_one_eviction_in_place() {
    let more = [
        r#"{"t":"segment","id":7,"role":"tool","origin":"harness","result_of":"c","text":"gone","source":{"file":0,"line":6,"key":"t#cleared"}}"#,
        r#"{"t":"evict","context":2,"from":1,"evicted":[{"segment":4}],"replacement":{"kind":"placeholder","segments":[7]},"by":{"kind":"rule","name":"micro"},"trigger":"auto","evidence":"recorded"}"#,
        r#"{"t":"generation","id":2,"context":2,"output":[]}"#,
    ];
    for renderer in [Renderer::bytes(), template("qwen.jinja")] {
        let tree = strict(render(&renderer, &tree(&[&TURNS[..], &more].concat())));
        let lines = lines(&tree);
        assert_eq!(
            lines[lines.len() - 2..],
            ["evict 2 by micro: T -> gone", "generation 2: "],
            "{lines:#?}"
        );
    }
}

#[test]
fn a_summary_takes_the_place_of_the_turns_and_their_glue() {
    let more = [
        r#"{"t":"append","context":2,"from":1,"segments":[5]}"#,
        r#"{"t":"segment","id":7,"role":"user","origin":"policy","text":"S","source":{"file":0,"line":6,"key":"s"}}"#,
        r#"{"t":"evict","context":3,"from":2,"evicted":[{"segment":1},{"segment":2},{"segment":3},{"segment":4},{"segment":5}],"replacement":{"kind":"summary","segments":[7]},"by":{"kind":"policy","generation":1},"trigger":"manual"}"#,
        r#"{"t":"append","context":4,"from":3,"segments":[6]}"#,
        r#"{"t":"generation","id":2,"context":4,"output":[]}"#,
    ];
    let tree = strict(render(&Renderer::bytes(), &tree(&[&TURNS[..], &more].concat())));
    let operations: Vec<_> =
        tree.records().iter().filter(|record| matches!(record, Record::Evict(_))).collect();
    let [Record::Evict(evict)] = operations[..] else {
        panic!("one eviction stays one: {:#?}", lines(&tree))
    };
    assert_eq!(evict.by, Some(By::policy(GenerationId(1))));
    assert_eq!(evict.trigger, Some(Trigger::Manual));
    let view = tree.view(GenerationId(2)).unwrap();
    assert_eq!(text(&view.tokens()), "<user/Q>/<user/S>/<user/U>/<assistant/");
}

#[test]
fn white_space_belongs_to_its_text_where_it_is_left_and_to_nobody_where_it_is_trimmed() {
    let lines = [
        r#"{"t":"segment","id":0,"role":"user","origin":"human","text":" Q\n"}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0]}"#,
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"\n\n A \n"}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1]}"#,
        r#"{"t":"segment","id":2,"role":"tool","origin":"environment","text":"\nT\n"}"#,
        r#"{"t":"append","context":1,"from":0,"segments":[1,2]}"#,
        r#"{"t":"generation","id":1,"context":1,"output":[]}"#,
    ];
    let tree = strict(render(&template("qwen.jinja"), &tree(&lines)));
    let said: Vec<String> = tree
        .records()
        .iter()
        .filter_map(|record| match record {
            Record::Segment(segment) if segment.text.is_some() => {
                Some(text(segment.tokens.as_deref()?))
            }
            _ => None,
        })
        .collect();
    // While the answer is the last message the template trims it; once a result follows it no
    // longer does.
    assert_eq!(said, [" Q/", " A /", "// A /", "/T/"]);
}

#[test]
fn what_the_template_had_dropped_is_still_evicted_by_who_evicts_it() {
    let more = [
        r#"{"t":"append","context":2,"from":1,"segments":[5,6]}"#,
        r#"{"t":"generation","id":2,"context":2,"output":[]}"#,
        r#"{"t":"evict","context":3,"from":2,"evicted":[{"segment":1}],"by":{"kind":"rule","name":"trim"}}"#,
        r#"{"t":"generation","id":3,"context":3,"output":[]}"#,
    ];
    let tree = strict(render(&template("qwen.jinja"), &tree(&[&TURNS[..], &more].concat())));
    let lines = lines(&tree);
    assert_eq!(lines[lines.len() - 2], "evict 3 by trim: ", "{lines:#?}");
    let removed = tree.removed(ContextId(3));
    assert_eq!(tree.segment(removed[0].segment).unwrap().text.as_deref(), Some("R"));
    assert!(removed[0].is_empty());
}

#[test]
fn trees_with_tokens_are_left_alone() {
    let tokens =
        r#"{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1,2],"text":"x"}"#;
    assert!(Renderer::bytes().render(&tree(&[tokens])).unwrap().is_none());
}

#[test]
fn mixed_trees_are_rendered_from_text_and_lower_their_fidelity() {
    let header = HEADER.replace("message", "token");
    let lines = [
        header.as_str(),
        r#"{"t":"segment","id":0,"role":"user","origin":"human","tokens":[81],"text":"Q","logprobs":[-0.5]}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0]}"#,
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"A","loss":[]}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1],"prompt_tokens":[81]}"#,
    ];
    let (tree, _) =
        BranchTree::read((lines.join("\n") + "\n").as_bytes(), "mixed.jsonl", ReadOptions::LENIENT)
            .unwrap();
    let rendered = render(&Renderer::bytes(), &tree);
    assert_eq!(
        rendered.notes,
        [
            "1 segments had tokens of their own: some had none, so all were rendered anew from their text",
            "the records are no longer of fidelity \"token\" but \"message\"",
            "0 of 1 recorded prompts are what the rendering gives; the others differ",
        ]
    );
    let tree = strict(rendered);
    assert_eq!(tree.header().fidelity, Fidelity::Message);
    assert_eq!(tree.header().tokenizer.as_ref().unwrap().vocab_size, Some(258));
    let kept = tree.records().iter().find_map(|record| match record {
        Record::Segment(segment) if segment.text.as_deref() == Some("Q") => {
            Some(segment.logprobs.clone())
        }
        _ => None,
    });
    assert_eq!(
        kept,
        Some(Some(vec![-0.5])),
        "the ids are the same, so what is known of them stays"
    );
    let output: Vec<_> = tree.views().flat_map(|view| view.output().collect::<Vec<_>>()).collect();
    assert_eq!(
        output.iter().map(|token| token.weight).collect::<Vec<_>>(),
        [Some(0.0); 2],
        "an output without weight stays without, its end of turn too"
    );
}

#[test]
fn text_that_is_not_there_is_an_error_of_its_segment() {
    let lines = [
        r#"{"t":"segment","id":0,"role":"user","origin":"human","tokens":[81]}"#,
        r#"{"t":"segment","id":1,"role":"user","origin":"human","text":"Q"}"#,
    ];
    let error = Renderer::bytes().render(&tree(&lines)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "session.jsonl:2: segment 0 has tokens but no text, while other segments have text alone; \
         give it its text, or give every segment tokens"
    );
}

#[test]
fn a_part_of_a_segment_cannot_be_rendered_from_text() {
    let lines = [
        r#"{"t":"segment","id":0,"role":"user","origin":"human","tokens":[81,82],"text":"QR"}"#,
        r#"{"t":"segment","id":1,"role":"user","origin":"human","text":"Q"}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0,1]}"#,
        r#"{"t":"evict","context":1,"from":0,"evicted":[{"segment":0,"tokens":[0,1]}]}"#,
    ];
    let error = Renderer::bytes().render(&tree(&lines)).unwrap_err();
    assert!(
        matches!(&error, RenderError::PartOfSegment { place, .. } if place == "session.jsonl:5"),
        "{error}"
    );
}

#[test]
fn a_tool_call_must_be_one() {
    let line = r#"{"t":"segment","id":0,"role":"assistant","origin":"policy","part":"tool_call","text":"{\"id\":\"c\"}"}"#;
    let error = Renderer::bytes().render(&tree(&[line])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "session.jsonl:2: the text of segment 0 is not a tool call: missing field `name` at line 1 column 10; \
         write it as {\"id\":..,\"name\":..,\"input\":..}"
    );
}

#[test]
fn a_tool_call_may_be_deep_and_not_without_end() {
    let render = |deep: usize| {
        let input = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
        let text = format!(r#"{{"id":"c","name":"ring","input":{input}}}"#);
        let line = serde_json::json!({"t": "segment", "id": 0, "role": "assistant", "origin": "policy", "part": "tool_call", "text": text});
        Renderer::bytes().render(&tree(&[&line.to_string()])).map_err(|error| error.to_string())
    };
    assert!(render(120).is_ok());
    let error = render(100_000).unwrap_err();
    assert!(error.contains("lists and objects are more than 128 deep"), "{error}");
}

#[test]
fn a_context_that_the_template_refuses_is_kept_where_nobody_is_called_under_it() {
    let lines = [
        r#"{"t":"segment","id":0,"role":"user","origin":"human","text":"Q"}"#,
        r#"{"t":"segment","id":1,"role":"user","origin":"human","text":"P"}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0,1]}"#,
        r#"{"t":"evict","context":1,"from":0,"evicted":[{"segment":1}],"by":{"kind":"human"}}"#,
        r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","text":"A"}"#,
        r#"{"t":"generation","id":0,"context":1,"output":[2]}"#,
    ];
    let rendered = render(&template("strict.jinja"), &tree(&lines));
    assert!(
        rendered
            .notes
            .iter()
            .any(|note| note.starts_with("1 contexts without a call are not rendered"))
    );
    let tree = strict(rendered);
    let view = tree.view(GenerationId(0)).unwrap();
    let ids: Vec<u8> = view.tokens().iter().map(|&id| u8::try_from(id).unwrap()).collect();
    assert_eq!(String::from_utf8(ids).unwrap(), "[user] Q\n[assistant] A");
    let human = |by: &Option<By>| by.as_ref().is_some_and(|by| by.kind == ByKind::Human);
    let own = tree
        .records()
        .iter()
        .filter(|record| matches!(record, Record::Evict(evict) if human(&evict.by)));
    assert_eq!(own.count(), 1);
}
