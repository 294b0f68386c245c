//! Making and ending tokens, from a terminal and over HTTP. The caller has checked that the user owns the project.

use serde_json::json;
use toolhost::Connection;
use toolhost_contract::{Clock, ErrorKind, SystemClock, ToolError, visible_line};
use toolhost_server::http::{Secret, TokenMade, TokenWish};
use toolhost_store::NewToken;

/// Makes a token of a project, between the two rows of that in its audit.
///
/// # Errors
/// If it acts for no member, or cannot be kept.
pub(crate) async fn make(connection: &Connection, key: &str, wish: TokenWish) -> Result<TokenMade, ToolError> {
    let TokenWish { name, profiles, mut rights, acts_for, lives } = wish;
    let project = connection.project();
    rights.sort_unstable();
    rights.dedup();
    let user = acts_for.unwrap_or_else(|| connection.user().name.clone());
    let members = connection.store().people().members(project.id).await?;
    let account_id =
        members.into_iter().find(|member| member.name == user).map(|member| member.id).ok_or_else(|| {
            let (project, user) = (visible_line(&project.name), visible_line(&user));
            ToolError::new(ErrorKind::Validation, format!("{project} has no member `{user}`"))
                .hint(format!("`toolhost member add {user}` makes them one"))
        })?;
    let secret = Secret::new(key).map_err(ToolError::internal)?;
    let hash = secret.hash();
    let lives_ms = i64::try_from(lives.as_millis()).map_err(ToolError::internal)?;
    let new = NewToken {
        project_id: project.id,
        account_id,
        id: format!("tok-{}", &hash[..8]),
        name,
        hash,
        profiles,
        scopes: rights.iter().map(|right| right.as_str().to_owned()).collect(),
        expires_at_ms: SystemClock::default().unix_ms().saturating_add(lives_ms),
    };
    let told = json!({
        "id": new.id, "name": new.name, "for": user, "profiles": new.profiles, "rights": new.scopes,
        "expiresAtMs": new.expires_at_ms,
    });
    let work = async { Ok::<_, ToolError>(connection.store().tokens().create(&new).await?) };
    connection.record(&connection.who(), "token.create", told, work).await?;
    let NewToken { id, name, profiles, scopes, expires_at_ms, .. } = new;
    let (project, token) = (key.to_owned(), secret.as_str().to_owned());
    Ok(TokenMade { id, name, acts_for: user, profiles, rights: scopes, expires_at_ms, project, token })
}

/// Ends a token for good, between the two rows of that in the audit.
///
/// # Errors
/// If there is none that is valid.
pub(crate) async fn revoke(connection: &Connection, id: &str) -> Result<(), ToolError> {
    let (tokens, project) = (connection.store().tokens(), connection.project().id);
    let work = async {
        if tokens.revoke(project, id).await? {
            return Ok(());
        }
        Err(ToolError::new(ErrorKind::NotFound, format!("there is no valid token `{}`", visible_line(id)))
            .hint("`toolhost token list` shows all tokens"))
    };
    connection.record(&connection.who(), "token.revoke", json!({ "id": id }), work).await
}
