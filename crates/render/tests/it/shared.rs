//! Contract: real sessions render strictly, and what each call saw is the template's rendering of
//! its messages, id for id.
use crate::messages;

use std::path::{Path, PathBuf};

use pleach_harness::convert;
use pleach_render::Renderer;
use pleach_tree::{BranchTree, ReadOptions};

fn sessions() -> Vec<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/transcripts/claude-code");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no sessions in {}", folder.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    assert!(!files.is_empty(), "{} holds no session", folder.display());
    files
}

#[test]
fn real_sessions_render_to_what_the_template_makes_of_them() {
    let qwen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/qwen.jinja");
    let renderers = [Renderer::bytes(), Renderer::bytes().with_template(qwen).unwrap()];
    for file in sessions() {
        let conversion = convert(&file, ReadOptions::LENIENT).unwrap();
        let (tree, _) =
            BranchTree::from_records(conversion.records, "session", ReadOptions::STRICT).unwrap();
        for renderer in &renderers {
            let rendered = renderer.render(&tree).unwrap().expect("sessions hold text");
            let (new, _) =
                BranchTree::from_records(rendered.records, "rendered", ReadOptions::STRICT)
                    .unwrap();
            let sampled: usize = new
                .views()
                .map(|view| view.output().filter(|token| token.weight.is_some()).count())
                .sum();
            assert!(sampled > 0, "{}", file.display());
            for view in new.views() {
                let context = tree.generation(view.generation().id).unwrap().context;
                let text =
                    renderer.template().render(&messages::messages(&tree, context), true).unwrap();
                let context = &view.tokens()[..view.context().tokens()];
                assert!(
                    context == renderer.encode(&text).unwrap(),
                    "{}: {}",
                    file.display(),
                    view.generation().id
                );
            }
        }
    }
}
