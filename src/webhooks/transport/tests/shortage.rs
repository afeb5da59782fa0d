//! What this machine is short of is not held against a receiver.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

#[tokio::test]
async fn a_lookup_that_never_began_is_not_the_receivers_failure() {
    let (transport, script) = scripted(&settings(Duration::from_millis(200)));
    script.will("waits.example", Line::Waits);
    script.will("hangs.example", Line::Hangs);
    assert_eq!(told(&post(&transport, "https://waits.example/").await), (None, Some("interrupted"), None));
    assert_eq!(told(&post(&transport, "https://hangs.example/").await), (None, Some("timeout"), None));
}

#[tokio::test]
async fn an_address_that_may_be_our_own_is_not_dialled_and_not_blocked_either() {
    let (at, _, connections) = recording(PUBLIC).await;
    // As a network, so that its addresses are asked about.
    let allow_networks = vec!["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
    let policy = EgressPolicy { allow_networks, ports: (1..=u16::MAX).collect(), allow_insecure: false };
    let script = Arc::new(Script::default());
    let resolver = Resolver::Scripted(Arc::clone(&script));
    let egress = Egress::untold(policy);
    let transport = Transport::new(&settings(AMPLE), egress, resolver, Clock::stopped_at(NOW)).unwrap();
    script.will("untold.example", addresses(&[PUBLIC, "10.0.0.1"]));
    script.will("refused.example", addresses(&["10.0.0.1", "169.254.169.254"]));
    let untold = post(&transport, &format!("https://untold.example:{}/", at.port())).await;
    assert_eq!(told(&untold), (None, Some("interrupted"), None));
    let refused = post(&transport, &format!("https://refused.example:{}/", at.port())).await;
    assert_eq!(told(&refused), (None, Some("blocked"), None), "one that is refused is refused");
    assert_eq!(told(&post(&transport, "https://10.0.0.1/").await), (None, Some("interrupted"), None));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

/// No file or socket can be opened, until this is dropped.
struct NoDescriptors(Rlimit);

impl NoDescriptors {
    fn from_now_on() -> Self {
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: before.maximum }).unwrap();
        Self(before)
    }
}

impl Drop for NoDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, Rlimit { current: self.0.current, maximum: self.0.maximum }).unwrap();
    }
}

/// Run by the test below, in a process of its own: the limit is the process's.
#[tokio::test]
#[ignore = "the test below runs it"]
async fn requests_while_no_descriptor_is_left() {
    let (at, seen, _) = recording(PRIVATE).await;
    let transport = insecure(AMPLE);
    let strict = {
        let policy = EgressPolicy::default();
        Transport::new(&settings(AMPLE), Egress::new(policy), Resolver::system(), Clock::stopped_at(NOW)).unwrap()
    };
    let by_figures = format!("http://{at}/");
    // `localhost` is known without a name server.
    let by_name = format!("http://localhost:{}/", at.port());
    let none = NoDescriptors::from_now_on();
    for (transport, url) in [(&transport, &*by_figures), (&transport, &by_name), (&strict, "https://93.184.216.34/")] {
        assert_eq!(told(&post(transport, url).await), (None, Some("interrupted"), None), "{url}");
    }
    drop(none);
    for url in [&by_figures, &by_name] {
        assert_eq!(told(&post(&transport, url).await), at_loopback(Some(200), None), "{url}");
    }
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn without_a_descriptor_nothing_is_the_receivers_failure() {
    let mut itself = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "webhooks::transport::tests::shortage::requests_while_no_descriptor_is_left";
    let output = itself.args(["--exact", name, "--ignored"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
