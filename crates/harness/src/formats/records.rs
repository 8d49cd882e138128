//! Eviction records themselves, taken as they are.
use pleach_tree::{ReadOptions, RecordReader, Report};

use crate::core::format::Format;
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How eviction records are told from other files.
pub(crate) const FORMAT: Format = Format::new(
    "records",
    "eviction records, which begin with a header",
    |shape: &Shape| shape.has("t"),
    convert,
);

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let main = input.main();
    let io = |source| HarnessError::io(&main.name, source);
    let (mut records, mut report) = (Vec::new(), Report::new(options));
    let mut lines = RecordReader::new(main.open()?, main.name.clone(), options);
    while let Some((_, record)) = lines.next_record(&mut report).map_err(io)? {
        records.push(record);
    }
    if report.has_errors() {
        return Err(HarnessError::Rejected(report));
    }
    Ok(Conversion { records, report, usage: None })
}
