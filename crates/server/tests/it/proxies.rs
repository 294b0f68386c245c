//! Whose failed logins are counted together where proxies stand before the server.

use toolhost_server::http::{ForwardedBy, HttpLimits, TrustedProxies};
use toolhost_testkit::http;

use crate::rig::{Rig, house};

/// Failed logins that an address has.
const LOGINS: u32 = 2;

async fn rig(trusted: &[&str], header: ForwardedBy) -> Rig {
    let limits = HttpLimits { failed_logins: LOGINS, ..HttpLimits::default() };
    let networks = trusted.iter().map(|text| text.parse().unwrap()).collect();
    Rig::start_behind(vec![house()], limits, TrustedProxies { networks, header }).await
}

/// The status of a failed login with this header.
async fn fails(rig: &Rig, header: (&str, &str)) -> u16 {
    let headers = [("authorization", "Bearer thp_wrong"), header];
    http(rig.address, ("GET", "/api/v1/projects"), &headers, "").await.status
}

async fn all_fail(rig: &Rig, headers: &[(&str, &str)]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for header in headers {
        statuses.push(fails(rig, *header).await);
    }
    statuses
}

#[tokio::test]
async fn a_stranger_s_header_changes_nothing() {
    for trusted in [&[][..], &["10.0.0.0/8", "::1"]] {
        let rig = rig(trusted, ForwardedBy::XForwardedFor).await;
        let forged = ["192.0.2.1", "192.0.2.2", "10.0.0.1", "::1"].map(|address| ("x-forwarded-for", address));
        assert_eq!(all_fail(&rig, &forged).await, [401, 401, 429, 429], "{trusted:?}");
        assert_eq!(fails(&rig, ("forwarded", "for=192.0.2.3")).await, 429, "{trusted:?}");
    }
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_counted_apart() {
    let rig = rig(&["127.0.0.0/8", "10.0.0.0/8"], ForwardedBy::XForwardedFor).await;
    let by = |address: &'static str| ("x-forwarded-for", address);
    assert_eq!(all_fail(&rig, &[by("192.0.2.1"); 3]).await, [401, 401, 429]);
    assert_eq!(all_fail(&rig, &[by("192.0.2.2"); 3]).await, [401, 401, 429]);
    // What the client wrote itself stands before what the proxies have written.
    assert_eq!(fails(&rig, by("192.0.2.77, 192.0.2.2")).await, 429);
    assert_eq!(fails(&rig, by("192.0.2.77, 192.0.2.1, 10.0.0.9, 127.0.0.1")).await, 429);
    // One client has a whole network of IPv6.
    let of_ipv6 = [by("2001:db8::1"), by("[2001:db8::2]:4711"), by("2001:db8::3"), by("2001:db8:0:1::1")];
    assert_eq!(all_fail(&rig, &of_ipv6).await, [401, 401, 429, 401]);
    // What cannot be read is the proxy's, and the other header is not read.
    let garbage = [by("rubbish"), by("192.0.2.9, 999.1.1.1"), by(""), ("forwarded", "for=192.0.2.10")];
    assert_eq!(all_fail(&rig, &garbage).await, [401, 401, 429, 429]);
    assert_eq!(fails(&rig, by("192.0.2.9")).await, 401);
}

#[tokio::test]
async fn the_standard_header_is_believed_where_the_operator_says_so() {
    let rig = rig(&["127.0.0.1"], ForwardedBy::Forwarded).await;
    let by = |said: &'static str| ("forwarded", said);
    let one = [by("for=192.0.2.1"), by("For=\"192.0.2.1:80\";proto=https"), by("for=10.0.0.1, for=192.0.2.1")];
    assert_eq!(all_fail(&rig, &one).await, [401, 401, 429]);
    assert_eq!(fails(&rig, by("for=\"[2001:db8::1]:4711\"")).await, 401);
}
