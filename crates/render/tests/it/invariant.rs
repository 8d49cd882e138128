//! Contract: whatever a harness evicts and whatever a chat template rewrites, the context of every
//! generation holds, id for id, what the template makes of that generation's messages, in records
//! that strict reading takes and that keep every operation.
use crate::tokenizer;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::messages::messages;
use crate::session::{Action, Session, action};
use pleach_render::Renderer;
use pleach_tree::{BranchTree, ByKind, Operation, Origin, Part, ReadOptions, Record, Segment};
use proptest::prelude::*;
use serde_json::Value;
use tokenizers::Tokenizer;

type Named = (&'static str, Renderer);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Bytes as tokens, under every template.
fn templates() -> &'static [Named] {
    static ALL: LazyLock<Vec<Named>> = LazyLock::new(|| {
        let with = |name: &str| {
            Renderer::bytes().with_template(file(name)).unwrap().on_date("2025-01-02").unwrap()
        };
        vec![
            ("chatml", Renderer::bytes()),
            ("qwen", with("qwen.jinja")),
            ("trimming", with("trimming.jinja")),
        ]
    });
    &ALL
}

/// Every tokenizer, under templates that it has special tokens for and that it has none for.
fn tokenizers() -> &'static [Named] {
    static ALL: LazyLock<Vec<Named>> = LazyLock::new(|| {
        let with = |tokenizer: &Tokenizer, name: &str| {
            let folder =
                tokenizer::folder(tokenizer, &std::fs::read_to_string(file(name)).unwrap());
            Renderer::open(folder.path()).unwrap().on_date("2025-01-02").unwrap()
        };
        vec![
            ("byte level, qwen", with(&tokenizer::byte_level(true), "qwen.jinja")),
            ("byte level, no special tokens", with(&tokenizer::byte_level(false), "qwen.jinja")),
            ("byte level, trimming", with(&tokenizer::byte_level(true), "trimming.jinja")),
            ("first word", with(&tokenizer::first_word(), "qwen.jinja")),
            ("prepended", with(&tokenizer::prepended(), "qwen.jinja")),
            ("greedy", with(&tokenizer::greedy(), "qwen.jinja")),
        ]
    });
    &ALL
}

fn render(renderer: &Renderer, tree: &BranchTree) -> BranchTree {
    let rendered = renderer.render(tree).unwrap().expect("there is text");
    BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

fn context_ids(tree: &BranchTree, generation: pleach_tree::GenerationId) -> Vec<u32> {
    let view = tree.view(generation).unwrap();
    view.context_spans().into_iter().flat_map(|span| tree.tokens(span)).copied().collect()
}

/// Source keys of what an operation lists as evicted.
fn keys(tree: &BranchTree, operation: &Record) -> Vec<String> {
    let Record::Evict(evict) = operation else { return Vec::new() };
    let key = |id| tree.segment(id).and_then(|segment| Some(segment.source.as_ref()?.key.clone()));
    evict.evicted.iter().filter_map(|entry| key(entry.segment)).collect()
}

fn own_operations(tree: &BranchTree) -> Vec<&Record> {
    let template = |by: &Option<pleach_tree::By>| {
        by.as_ref().is_some_and(|by| {
            by.kind == ByKind::Rule && by.name.as_deref() == Some("chat_template")
        })
    };
    let own = |record: &&Record| match record {
        Record::Evict(evict) => !template(&evict.by),
        Record::Replace(replace) => !template(&replace.by),
        Record::Fork(_) | Record::Generation(_) => true,
        _ => false,
    };
    tree.records().iter().filter(own).collect()
}

fn check(actions: &[Action], renderers: &[Named]) {
    let tree = Session::of(actions).tree();
    for (name, renderer) in renderers {
        let new = render(renderer, &tree);
        for generation in tree.generations() {
            let expected =
                renderer.template().render(&messages(&tree, generation.context), true).unwrap();
            let expected = renderer.encode(&expected).unwrap();
            assert_eq!(context_ids(&new, generation.id), expected, "{name}, {}", generation.id);
        }
        let (old_operations, new_operations) = (own_operations(&tree), own_operations(&new));
        assert_eq!(old_operations.len(), new_operations.len(), "{name}");
        for (old, new_one) in old_operations.into_iter().zip(new_operations) {
            match (old, new_one) {
                (Record::Evict(a), Record::Evict(b)) => {
                    assert_eq!((&a.by, a.trigger, a.evidence), (&b.by, b.trigger, b.evidence));
                    assert_eq!(
                        a.replacement.as_ref().map(|r| r.kind),
                        b.replacement.as_ref().map(|r| r.kind)
                    );
                    let kept = keys(&new, new_one);
                    assert!(
                        keys(&tree, old).iter().all(|key| kept.contains(key)),
                        "{name}: {old:?} {new_one:?}"
                    );
                }
                (Record::Fork(a), Record::Fork(b)) => assert_eq!(a.reason, b.reason),
                (Record::Generation(a), Record::Generation(b)) => {
                    assert_eq!((a.id, a.context, &a.thread), (b.id, b.context, &b.thread));
                }
                (Record::Replace(_), Record::Replace(_)) => {}
                other => panic!("{name}: {other:?}"),
            }
        }
        for context in tree.contexts().filter_map(|context| context.id()) {
            let same = matches!(
                (tree.operation(context), new.context(context)),
                (
                    Some(
                        Operation::Append(_)
                            | Operation::Evict(_)
                            | Operation::Replace(_)
                            | Operation::Fork(_)
                    ),
                    Some(_)
                )
            );
            assert!(same, "{name}: {context} keeps its id");
        }
    }
}

/// What the tokens of a segment say, with bytes as tokens.
fn said(segment: &Segment) -> String {
    let mut bytes = Vec::new();
    for &id in segment.tokens.iter().flatten() {
        match (u8::try_from(id), id) {
            (Ok(byte), _) => bytes.push(byte),
            (_, 256) => bytes.extend(b"<|im_start|>"),
            _ => bytes.extend(b"<|im_end|>"),
        }
    }
    String::from_utf8(bytes).expect("a segment holds whole characters")
}

/// Every character of a text stands in that text's segment, and none of the template's does.
fn check_provenance(actions: &[Action]) {
    let tree = Session::of(actions).tree();
    let text = |key: &str| {
        tree.records().iter().find_map(|record| match record {
            Record::Segment(segment) if identity(segment) == key => segment.text.clone(),
            _ => None,
        })
    };
    for (name, renderer) in templates() {
        let new = render(renderer, &tree);
        for record in new.records() {
            let Record::Segment(segment) = record else { continue };
            let (said, key) = (said(segment), identity(segment));
            let Some(text) = text(&key).filter(|_| segment.source.is_some()) else {
                // What the template writes around an answer was sampled with it.
                let glue = [Origin::Harness, Origin::Policy].contains(&segment.origin);
                assert!(glue && segment.text.is_none(), "{name}: {segment:?}");
                continue;
            };
            if segment.part == Some(Part::ToolCall) {
                let (call, said): (Value, Value) = (
                    serde_json::from_str(&text).unwrap(),
                    serde_json::from_str(&said).unwrap_or_default(),
                );
                let arguments =
                    if *name == "trimming" { &said["parameters"] } else { &said["arguments"] };
                assert_eq!(
                    (&said["name"], arguments),
                    (&call["name"], &call["input"]),
                    "{name}: {said}"
                );
            } else if *name == "chatml" {
                assert_eq!(said, text, "{name}");
            } else {
                let quoted = serde_json::to_string(&text).unwrap();
                let quoted = &quoted[1..quoted.len() - 1];
                let same = said.is_empty() || said.trim() == text.trim() || said == quoted;
                assert!(same, "{name}: {said:?} of {text:?}");
            }
        }
    }
}

fn identity(segment: &Segment) -> String {
    let source = segment.source.as_ref().map(|source| (source.line, source.key.clone()));
    format!("{source:?} {:?} {:?}", segment.part, segment.calls)
}

/// Texts that a template takes apart, or that hold the characters of marks.
fn is_plain(action: &Action) -> bool {
    let text = format!("{action:?}");
    !text.contains('<') && !text.contains("f0000")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_context_is_the_rendering_of_its_messages(actions in prop::collection::vec(action(), 1..14)) {
        check(&actions, templates());
    }

    #[test]
    fn every_context_is_the_rendering_under_every_tokenizer(actions in prop::collection::vec(action(), 1..10)) {
        check(&actions, tokenizers());
    }

    #[test]
    fn every_character_belongs_to_who_wrote_it(actions in prop::collection::vec(action().prop_filter("", is_plain), 1..14)) {
        check_provenance(&actions);
    }
}
