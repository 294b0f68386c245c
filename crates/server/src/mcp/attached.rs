//! What an answer has beside its text, in MCP's shapes.

use rmcp::model::{ContentBlock, ResourceContents};
use toolhost_contract::{Attachment, AttachmentContent};

/// The address of a document that has none of its own.
const UNNAMED: &str = "toolhost://attachment";

/// An attachment as MCP shows it to a model.
pub(crate) fn block(attachment: Attachment) -> ContentBlock {
    let Attachment { mime_type, uri, content } = attachment;
    match (content, uri) {
        (AttachmentContent::Base64(data), None) if mime_type.starts_with("image/") => {
            ContentBlock::image(data, mime_type)
        }
        (AttachmentContent::Base64(data), None) if mime_type.starts_with("audio/") => {
            ContentBlock::audio(data, mime_type)
        }
        (content, uri) => ContentBlock::resource(document(Attachment { mime_type, uri, content }, UNNAMED)),
    }
}

/// An attachment as the content of a resource, under its own address or else this one.
pub(crate) fn document(attachment: Attachment, uri: &str) -> ResourceContents {
    let Attachment { mime_type, uri: own, content } = attachment;
    let uri = own.unwrap_or_else(|| uri.to_owned());
    let contents = match content {
        AttachmentContent::Text(text) => ResourceContents::text(text, uri),
        AttachmentContent::Base64(data) => ResourceContents::blob(data, uri),
    };
    contents.with_mime_type(mime_type)
}
