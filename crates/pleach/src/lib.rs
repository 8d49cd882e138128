//! Train language-model agents whose harness compacts their context, on exactly what they saw.
//!
//! Every eviction forks the history that later tokens are sampled under, so a rollout is a tree.
//! This crate is a façade over the parts that read what harnesses record, build that tree, lay it
//! out and train on it:
//!
//! | module | what it does |
//! | --- | --- |
//! | [`tree`] | eviction records, the branch tree, views |
//! | [`harness`] | session files of agent harnesses to eviction records |
//! | [`render`] | text to tokens, by chat template and tokenizer |
//! | [`layout`] | the token trie, the four layouts, loss terms, accounting |
//! | [`picture`] | masks as SVG and PNG |
//! | [`kernels`] | attention over the packed tree |
//! | [`train`] | decoder, checkpoints, batches, losses, the equivalence check |
//!
//! ```
//! # #[cfg(all(feature = "train", feature = "flex"))] {
//! use burn::tensor::{DType, Device};
//! use pleach::layout::Layouts;
//! use pleach::train::decoder::{Decoder, DecoderConfig, Family};
//! use pleach::train::{Batch, backward, objective::NllConfig};
//! use pleach::tree::{BranchTree, ReadOptions};
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
//! let packed = Layouts::new(&tree)?.packed()?;
//! assert_eq!(packed.sequences[0].tokens, [5, 6, 7, 8, 9, 7, 8, 9, 10]);
//!
//! let device = Device::flex().autodiff();
//! let model = Decoder::seeded(DecoderConfig::small(Family::Llama, 16, 2), 0, DType::F64, &device)?;
//! let batch = Batch::new(&packed, &device)?;
//! let loss = NllConfig::new().init().forward(&model, &batch)?.loss;
//! let gradients = backward(&loss)?;
//! # let _ = gradients;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#[cfg(feature = "harness")]
pub use pleach_harness as harness;
#[cfg(feature = "kernels")]
pub use pleach_kernels as kernels;
#[cfg(feature = "layout")]
pub use pleach_layout as layout;
#[cfg(feature = "picture")]
pub use pleach_picture as picture;
#[cfg(feature = "render")]
pub use pleach_render as render;
#[cfg(feature = "train")]
pub use pleach_train as train;
pub use pleach_tree as tree;
