//! A mask of 100,000 tokens is drawn without anything of size tokens x tokens, neither in memory
//! nor in time.
use std::fmt::Write;
use std::time::{Duration, Instant};

use pleach_layout::Layouts;
use pleach_picture::{Picture, PictureOptions};
use pleach_tree::{BranchTree, ReadOptions};

/// The most memory that this process ever held, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Turns of 1,000 tokens; every tenth clears the result before it, so that what stands behind is
/// encoded again.
fn records(turns: u32) -> String {
    let tokens: Vec<u32> = (0..500).collect();
    let mut text = String::from(
        "{\"t\":\"header\",\"version\":1,\"harness\":\"example\",\"fidelity\":\"token\"}\n",
    );
    let segment = |id: u32, role: &str, origin: &str| {
        format!(
            "{{\"t\":\"segment\",\"id\":{id},\"role\":\"{role}\",\"origin\":\"{origin}\",\"tokens\":{tokens:?}}}\n"
        )
    };
    text += &segment(0, "user", "human");
    text += "{\"t\":\"append\",\"context\":0,\"from\":null,\"segments\":[0]}\n";
    let mut context = 0;
    for turn in 0..turns {
        let (said, result) = (1 + 2 * turn, 2 + 2 * turn);
        text += &segment(said, "assistant", "policy");
        writeln!(
            text,
            "{{\"t\":\"generation\",\"id\":{turn},\"context\":{context},\"output\":[{said}]}}"
        )
        .unwrap();
        text += &segment(result, "tool", "environment");
        let next = context + 1;
        writeln!(text, "{{\"t\":\"append\",\"context\":{next},\"from\":{context},\"segments\":[{said},{result}]}}").unwrap();
        context = next;
        if turn % 10 == 9 {
            let (next, cleared) = (context + 1, result - 2);
            let evicted = format!("\"evicted\":[{{\"segment\":{cleared}}}]");
            writeln!(text, "{{\"t\":\"evict\",\"context\":{next},\"from\":{context},{evicted}}}")
                .unwrap();
            context = next;
        }
    }
    text
}

#[test]
fn a_hundred_thousand_tokens_take_little_memory_and_time() {
    let records = records(110);
    let (tree, _) =
        BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT).unwrap();
    let layouts = Layouts::new(&tree).unwrap();
    let layout = layouts.packed().unwrap();
    assert!(layout.tokens() > 100_000, "{}", layout.tokens());
    let (before, start) = (peak(), Instant::now());
    let options = PictureOptions { side: 512, ..PictureOptions::default() };
    let picture = Picture::new(&layouts, &layout, &options).unwrap();
    let (svg, png) = (picture.svg().unwrap(), picture.png().unwrap());
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(svg.len() < 1_000_000 && png.len() < 1_000_000, "{} {}", svg.len(), png.len());
    match (before, peak()) {
        // A bit for each pair would be 1.2 GB.
        (Some(before), Some(after)) => assert!(after - before < 100_000, "{} kB", after - before),
        _ => eprintln!("skipped: this system does not tell how much memory was held"),
    }
}
