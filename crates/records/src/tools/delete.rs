//! The tools that delete a record of one kind.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use toolhost_contract::{Alias, Ctx, Example, Facts, Preview, ToolError};

use crate::tools::desk::deletion;
use crate::tools::tool::RecordTool;
use crate::{Edit, Kind, ProjectRecords, RecordId, Removed};

/// What is to be said of a tool that deletes. [`Delete`] makes a tool of it.
pub(crate) trait Deletes: Send + Sync + 'static {
    const KIND: Kind;
    const NAME: &'static str;
    const TITLE: &'static str;
    /// What becomes of the records that name a deleted one, as a sentence. `None`: no record names one of this kind.
    const NAMERS: Option<&'static str>;

    fn aliases(&self) -> Vec<Alias> {
        Vec::new()
    }

    fn examples(&self) -> Vec<Example>;
}

pub(crate) struct Delete<D>(pub(crate) D);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Given {
    id: String,
    #[serde(default)]
    cascade: bool,
    #[serde(flatten)]
    edit: Edit,
}

/// The arguments. Their descriptions name the kind.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Input<D> {
    given: Given,
    #[serde(skip)]
    kind: PhantomData<D>,
}

impl<D: Deletes> JsonSchema for Input<D> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        D::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Given::json_schema(generator);
        let kept = "Its history is kept: `record.restore` brings it back.";
        let stays = if D::NAMERS.is_some() { "While others name it, it stays, unless `cascade` is set. " } else { "" };
        let what = D::KIND.as_str();
        schema.insert("description".to_owned(), format!("Deletes a {what}. {stays}{kept}").into());
        schema.insert("additionalProperties".to_owned(), false.into());
        if let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut()) {
            properties["id"]["description"] = format!("Which one, such as {}.", D::KIND.id(1)).into();
            match D::NAMERS {
                Some(namers) => {
                    properties["cascade"]["description"] = format!("Also while others name it. {namers}").into()
                }
                None => drop(properties.shift_remove("cascade")),
            }
        }
        schema
    }
}

impl<D: Deletes> RecordTool for Delete<D> {
    type Input = Input<D>;
    type Output = Removed;
    const NAME: &'static str = D::NAME;
    const TITLE: &'static str = D::TITLE;
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        self.0.aliases()
    }

    fn examples(&self) -> Vec<Example> {
        self.0.examples()
    }

    async fn preview(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input<D>) -> Result<Option<Preview>, ToolError> {
        let Given { id, cascade, edit } = input.given;
        deletion(desk, RecordId::of(D::KIND, &id)?, &edit, cascade).await.map(Some)
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input<D>) -> Result<Removed, ToolError> {
        let Given { id, cascade, edit } = input.given;
        Ok(desk.delete(RecordId::of(D::KIND, &id)?, &edit, cascade).await?)
    }
}
