//! Reads records, draws the mask of each layout.
//!
//! ```sh
//! cargo run --release -p pleach --example draw_mask [RECORDS.jsonl] [FOLDER]
//! ```
use std::path::Path;

use anyhow::Result;
use pleach::layout::{LayoutKind, Layouts};
use pleach::picture::{Picture, PictureOptions};
use pleach::tree::{BranchTree, ReadOptions};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let records = args.next().unwrap_or_else(|| "examples/records/gate.jsonl".into());
    let folder = args.next().unwrap_or_else(|| "target/masks".into());
    std::fs::create_dir_all(&folder)?;
    let (tree, _) = BranchTree::open(&records, ReadOptions::STRICT)?;
    let layouts = Layouts::new(&tree)?;
    for kind in LayoutKind::ALL {
        let picture = Picture::new(&layouts, &layouts.layout(kind)?, &PictureOptions::default())?;
        let path = Path::new(&folder).join(kind.name());
        std::fs::write(path.with_extension("svg"), picture.svg()?)?;
        std::fs::write(path.with_extension("png"), picture.png()?)?;
        println!("{}", path.with_extension("png").display());
    }
    Ok(())
}
