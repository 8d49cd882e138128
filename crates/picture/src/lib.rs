//! The mask of a layout as a picture, SVG and PNG, with what made it: segments, branches, evictions
//! and generations.
//!
//! ```
//! use pleach_layout::Layouts;
//! use pleach_picture::{Picture, PictureOptions};
//! use pleach_tree::{BranchTree, ReadOptions};
//!
//! let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
//! {"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}
//! {"t":"append","context":0,"from":null,"segments":[0]}
//! {"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}
//! {"t":"generation","id":0,"context":0,"output":[1]}
//! {"t":"append","context":1,"from":0,"segments":[1]}
//! {"t":"evict","context":2,"from":1,"evicted":[{"segment":0,"tokens":[1,2]}]}
//! {"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}
//! {"t":"generation","id":1,"context":2,"output":[2]}
//! "#;
//! let (tree, _) = BranchTree::read(records.as_bytes(), "example.jsonl", ReadOptions::STRICT)?;
//! let layouts = Layouts::new(&tree)?;
//! let options = PictureOptions { title: Some("example".into()), ..PictureOptions::default() };
//! let picture = Picture::new(&layouts, &layouts.packed()?, &options)?;
//! let svg = picture.svg()?;
//! assert!(svg.contains("9 tokens") && svg.contains("evicted: 1 token"));
//! assert!(picture.png()?.starts_with(b"\x89PNG"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Coverage`] counts what such a picture shades: how many pairs of each square of a grid are
//! visible.
mod compose;
mod coverage;
mod error;
mod font;
mod options;
mod picture;
mod raster;
mod scene;
mod speaker;
mod subject;
mod svg;

pub use coverage::{Bins, Coverage, Tile};
pub use error::PictureError;
pub use options::{PictureOptions, Theme};
pub use picture::Picture;
