//! The files of a project's workflow package: imported, begun, exported, listed.
//!
//! Each is what a person does, in the name of the connection's user: the role is checked, a change has its two rows in the
//! audit, a read has one.

use serde_json::json;
use toolhost_builder::limits::Size;
use toolhost_builder::packages::{Brought, PackageError, ProjectPackage, WorkflowLine};
use toolhost_builder::{Files, Finding, Package, validate_up_to};
use toolhost_store::Role;

use crate::connection::Connection;
use crate::error::{Error, Result};

/// Workflows asked for at once.
const LIST_PAGE: i64 = 1000;

/// The workflow package of a project.
#[derive(Clone, Copy)]
pub struct Packages<'a> {
    connection: &'a Connection,
}

impl Connection {
    /// The project's workflow package.
    #[must_use]
    pub fn packages(&self) -> Packages<'_> {
        Packages::new(self)
    }
}

impl<'a> Packages<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection }
    }

    /// What is wrong with the files of a package. It looks at these files alone.
    #[must_use]
    pub fn validate(files: Files, most: Size) -> Vec<Finding> {
        validate_up_to(&Package::read(files), most)
    }

    /// Imports a package. One that the project has is replaced if `replace` says so, and refused otherwise.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the user owns the project; [`PackageError::Invalid`] with all findings.
    pub async fn import(&self, files: Files, replace: bool) -> Result<Brought> {
        self.import_from(None, files, replace, Size::default()).await
    }

    /// As [`Packages::import`]: `from` is the name of the file or folder, for the audit, and `most` how large the package may
    /// be.
    ///
    /// # Errors
    /// As [`Packages::import`].
    pub async fn import_from(&self, from: Option<&str>, files: Files, replace: bool, most: Size) -> Result<Brought> {
        let connection = self.connection;
        connection.need_role(Role::Owner).await?;
        let package = Package::read(files);
        let who = connection.who();
        let shelf = connection.shelf(&who)?;
        let arguments = json!({ "from": from, "replace": replace });
        let work = async { Ok::<_, Error>(shelf.import(&package, replace, most).await?) };
        connection.record(&who, "package import", arguments, work).await
    }

    /// Begins an empty package: it has no workflow yet.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the user owns the project; [`PackageError::Exists`] if it has a package. `created_at` is
    /// RFC 3339.
    pub async fn begin(&self, name: &str, description: Option<&str>, created_at: &str) -> Result<()> {
        if name.trim().is_empty() {
            return Err(Error::PackageName);
        }
        let connection = self.connection;
        connection.need_role(Role::Owner).await?;
        let package = toolhost_builder::begun(name, description, created_at);
        let who = connection.who();
        let shelf = connection.shelf(&who)?;
        let arguments = json!({ "name": name, "description": description });
        let work = async { Ok::<_, Error>(shelf.begin(&package).await?) };
        connection.record(&who, "package new", arguments, work).await
    }

    /// All files, byte for byte.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member; [`PackageError::NoPackage`].
    pub async fn export(&self) -> Result<Files> {
        self.read("package export", async |shelf: &ProjectPackage| shelf.export().await).await
    }

    /// All files and the number of the change that they are of; no files where that is the change that is `known`.
    ///
    /// # Errors
    /// As [`Packages::export`].
    pub async fn files_since(&self, known: Option<i64>) -> Result<(i64, Option<Files>)> {
        self.read("package show", async |shelf: &ProjectPackage| shelf.files_since(known).await).await
    }

    /// The workflows, in the order of the manifest.
    ///
    /// # Errors
    /// As [`Packages::export`].
    pub async fn workflows(&self) -> Result<Vec<WorkflowLine>> {
        self.read("package list", async |shelf: &ProjectPackage| {
            let mut lines = Vec::new();
            loop {
                let page = shelf.workflows(i64::try_from(lines.len()).unwrap_or(i64::MAX), LIST_PAGE).await?;
                let is_last = i64::try_from(page.len()).unwrap_or(LIST_PAGE) < LIST_PAGE;
                lines.extend(page);
                if is_last {
                    return Ok(lines);
                }
            }
        })
        .await
    }

    async fn read<T>(
        &self,
        what: &str,
        work: impl AsyncFnOnce(&ProjectPackage) -> std::result::Result<T, PackageError>,
    ) -> Result<T> {
        self.connection.need_role(Role::Viewer).await?;
        let who = self.connection.who();
        let shelf = self.connection.shelf(&who)?;
        let work = async { Ok::<_, Error>(work(&shelf).await?) };
        self.connection.record_read(&who, what, json!({}), work).await
    }
}
