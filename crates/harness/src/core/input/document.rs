//! Files that hold one JSON document over many lines.
use std::io::{self, BufRead, Read};

use pleach_tree::{JsonLines, Location, ReadOptions, Report};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::Member;
use crate::HarnessError;
use crate::core::shape::Shape;

impl Member {
    /// Every value of a file, whether it is one document over many lines or has one value a line;
    /// `take` gets each with its place.
    ///
    /// # Errors
    /// [`HarnessError::Io`]; what is wrong with the text goes into `report`.
    pub(crate) fn values<T: DeserializeOwned>(
        &self,
        options: ReadOptions,
        report: &mut Report,
        mut take: impl FnMut(T, &Location, &mut Report),
    ) -> Result<(), HarnessError> {
        if self.is_document()? {
            let (documents, at) = self.document(options, report)?;
            documents.into_iter().for_each(|value| take(value, &at, report));
            return Ok(());
        }
        let (mut lines, mut values) =
            (JsonLines::new(self.open()?, self.name.clone(), options), Vec::new());
        let io = |source| HarnessError::io(&self.name, source);
        while let Some(at) = lines.next_line(&mut values, report).map_err(io)? {
            values.drain(..).for_each(|value| take(value, &at, report));
        }
        Ok(())
    }

    /// Whether the first line that holds anything is the start of a value that goes on behind it.
    fn is_document(&self) -> Result<bool, HarnessError> {
        let start = self.start(1 << 16)?;
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
        let Some(end) = memchr::memchr(b'\n', start) else { return Ok(false) };
        let goes_on = !start[end..].trim_ascii().is_empty();
        Ok(goes_on && Shape::of(&start[..end]).1.is_err_and(|error| error.is_eof()))
    }

    /// Whether the file is sound JSON whose values go over several lines.
    ///
    /// # Errors
    /// [`HarnessError::Io`].
    pub(crate) fn is_indented(&self) -> Result<bool, HarnessError> {
        if !self.is_document()? {
            return Ok(false);
        }
        let mut reader = self.open()?;
        let start = reader.fill_buf().map_err(|source| HarnessError::io(&self.name, source))?;
        let mark = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        reader.consume(mark);
        let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<IgnoredAny>();
        Ok(values.all(|value| value.is_ok()))
    }

    /// The documents of the file, most often one, with the same damage named and mended as in JSON
    /// Lines.
    ///
    /// A line break between two tokens of JSON is white space, so the file is read as one line,
    /// which it is in errors too.
    ///
    /// # Errors
    /// [`HarnessError::Io`]; what is wrong with the text goes into `report`.
    pub(crate) fn document<T: DeserializeOwned>(
        &self,
        options: ReadOptions,
        report: &mut Report,
    ) -> Result<(Vec<T>, Location), HarnessError> {
        let mut documents = Vec::new();
        let mut lines = JsonLines::new(
            OneLine { reader: self.open()?, buffer: Vec::new(), at: 0 },
            self.name.clone(),
            options,
        );
        let at = lines
            .next_line(&mut documents, report)
            .map_err(|source| HarnessError::io(&self.name, source))?;
        Ok((documents, at.unwrap_or_else(|| Location::line(&self.name, 1))))
    }
}

/// A reader whose line breaks are spaces.
struct OneLine<R> {
    reader: R,
    buffer: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Read for OneLine<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(out.len());
        out[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for OneLine<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
            let ready = self.reader.fill_buf()?;
            self.buffer.extend(ready.iter().map(|&byte| if byte == b'\n' { b' ' } else { byte }));
            let count = ready.len();
            self.reader.consume(count);
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.buffer.len());
    }
}
