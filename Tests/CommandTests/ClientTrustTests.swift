// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Unmodified programs run by `exec`, with a site whose certificate is trusted only through `exec`'s CA variables.
@Suite(.waiting) struct ClientTrustTests {
    private static let java = """
        import java.net.*; import java.net.http.*;
        public class Get { public static void main(String[] a) throws Exception {
            System.out.println(new String(new URL(a[0]).openConnection().getInputStream().readAllBytes()));
            System.out.println(HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body());
        } }
        """
    private static let go = """
        package main
        import ("io"; "net/http"; "os")
        func main() {
            response, err := http.Get(os.Args[1])
            if err != nil { panic(err) }
            io.Copy(os.Stdout, response.Body)
        }
        """
    /// Node supports proxy variables from version 24 on; for older versions, the program opens the tunnel itself.
    private static let node = """
        const http = require('http'), tls = require('tls');
        const u = new URL(process.argv[2]), p = new URL(process.env.https_proxy);
        http.request({ host: p.hostname, port: p.port, method: 'CONNECT', path: u.host }).on('connect', (r, s) => {
            const t = tls.connect({ socket: s, servername: u.hostname }, () =>
                t.write('GET / HTTP/1.1\\r\\nHost: ' + u.host + '\\r\\nConnection: close\\r\\n\\r\\n'));
            t.on('data', d => process.stdout.write(d));
        }).end();
        """

    @Test(arguments: [
        ("curl", ["curl", "-sS"], ""), ("git", ["git", "ls-remote"], ""),
        (
            "python3",
            ["/usr/bin/python3", "-c", "import urllib.request,sys;print(urllib.request.urlopen(sys.argv[1]).read())"],
            ""
        ),
        ("ruby", ["ruby", "-ropen-uri", "-e", "puts URI.open(ARGV[0]).read"], ""),
        ("node", ["node", "program.js"], node), ("java", ["java", "program.java"], java),
        ("go", ["go", "run", "program.go"], go),
    ])
    func programTrustsTheSiteThroughItsEnvironment(_ name: String, _ words: [String], _ program: String) throws {
        _ = try Tool.path(name)
        let sandbox = try Sandbox()
        let folder = sandbox.folder
        let origin = try ChildProcess(
            Tool.path("openssl"),
            [
                "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", Tool.fixture("origin-ec.pem"), "-key",
                Tool.fixture("origin-ec.key.pem"),
            ], environment: ["PATH": "/usr/bin:/bin"], capture: folder.file("origin"))
        let url = "https://a.test.localhost:" + (try origin.line(after: "ACCEPT 127.0.0.1:")) + "/"
        try folder.write("home/Certs/anchors/origin.pem", TextFile.bytes(Tool.fixture("origin-root.pem")))
        try sandbox.succeed("sites", "add", url.dropLast().description)
        if let file = words.last, file.hasPrefix("program.") { try folder.write(file, program) }
        let command = (words + [url]).map { "'\($0)'" }.joined(separator: " ")
        let result = try sandbox.sh(
            "GOCACHE='\(Tool.repository)/.build/go-cache' countersign exec -- \(command)", seconds: 240)
        // After the handshake, git fails because there is no repository.
        let isAnswered =
            name == "git" ? result.error.contains("not valid: is this a git repository") : result.status == 0
        #expect(isAnswered, "\(result.said)")
        #expect(name == "git" || result.output.contains("s_server -accept"), "\(result.said)")
    }
}
