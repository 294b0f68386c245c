//! Text of unknown encoding: what it is, and how to write it back as it was.

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

/// How a file's text was encoded, so that an edit can keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    encoding: &'static encoding_rs::Encoding,
    bom: bool,
}

/// Text and the encoding it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub text: String,
    pub encoding: Encoding,
}

/// Bytes looked at to tell text from binary, as git does.
const SNIFF_BYTES: usize = 8000;

impl Encoding {
    pub const UTF_8: Self = Self { encoding: UTF_8, bom: false };

    /// The WHATWG name, such as `UTF-8` or `windows-1252`.
    pub fn name(&self) -> &'static str {
        self.encoding.name()
    }
}

/// Decodes text. `None` if it is binary: a NUL near the start without a UTF-16 byte order mark.
pub fn decode(bytes: &[u8]) -> Option<Decoded> {
    if let Some((encoding, length)) = encoding_rs::Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[length..]);
        return Some(Decoded { text: text.into_owned(), encoding: Encoding { encoding, bom: true } });
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let binary = text.as_bytes().iter().take(SNIFF_BYTES).any(|b| *b == 0);
        return (!binary).then(|| Decoded { text: text.to_owned(), encoding: Encoding::UTF_8 });
    }
    if bytes.iter().take(SNIFF_BYTES).any(|b| *b == 0) {
        return None;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, chardetng::Utf8Detection::Deny);
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    Some(Decoded { text: text.into_owned(), encoding: Encoding { encoding, bom: false } })
}

/// Encodes text as it was. `None` if the encoding has no place for one of its characters.
pub fn encode(text: &str, encoding: Encoding) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() + 3);
    let unit = |c: u16, big: bool| if big { c.to_be_bytes() } else { c.to_le_bytes() };
    if encoding.encoding == UTF_16LE || encoding.encoding == UTF_16BE {
        // The WHATWG standard has no UTF-16 encoder, so `encoding_rs` has none either.
        let big = encoding.encoding == UTF_16BE;
        if encoding.bom {
            bytes.extend(unit(0xfeff, big));
        }
        bytes.extend(text.encode_utf16().flat_map(|c| unit(c, big)));
        return Some(bytes);
    }
    if encoding.bom {
        bytes.extend([0xef, 0xbb, 0xbf]);
    }
    let (encoded, _, unmappable) = encoding.encoding.encode(text);
    bytes.extend(encoded.iter());
    (!unmappable).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_decoded_is_written_back_byte_for_byte() {
        let cases: [&[u8]; 5] = [
            "plain ünïcode\r\n".as_bytes(),
            b"\xef\xbb\xbfwith a mark\n",
            b"\xff\xfeh\0i\0\n\0",
            b"\xfe\xff\0h\0i",
            b"caf\xe9 na\xefve d\xe9j\xe0 vu\n",
        ];
        for bytes in cases {
            let decoded = decode(bytes).expect("text");
            assert_eq!(encode(&decoded.text, decoded.encoding).as_deref(), Some(bytes), "{}", decoded.encoding.name());
        }
    }

    #[test]
    fn binary_is_told_from_text() {
        assert!(decode(b"\x7fELF\x02\x01\x01\0\0\0").is_none());
        assert!(decode(b"").is_some());
    }

    #[test]
    fn a_character_the_encoding_lacks_is_not_lost_silently() {
        let latin = decode(b"caf\xe9 na\xefve d\xe9j\xe0 vu\n").expect("text").encoding;
        assert_eq!(encode("漢字", latin), None);
    }
}
