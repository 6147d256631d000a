// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

extension SignInSandbox {
    /// Installs a scripted program in place of `countersign-webview`, and returns the variables that name it. `script`
    /// is of sh: `say` prints a line, `hear` reads one into `$line` and keeps it, and `sign_in` signs in as a person
    /// does, and closes the window.
    func webView(_ script: String) throws -> [String: String] {
        let path = try sandbox.folder.write(
            program: "webview",
            """
            #!/bin/sh
            say() { printf '%s\\n' "$1"; }
            hear() { IFS= read -r line || exit 9; printf '%s\\n' "$line" >> \(file("heard")); }
            sign_in() {
                url=$(sed -n '1s/.*"url":"\\([^"]*\\)".*/\\1/p' \(file("heard")))
                location=$(curl -q -sS -k --noproxy '*' --resolve provider.test.localhost:\(provider.port):127.0.0.1 \\
                    -o /dev/null -D - "$url" | tr -d '\\r' | sed -n 's/^[Ll]ocation: //p')
                say "{\\"type\\":\\"redirect\\",\\"url\\":\\"$location\\"}"; hear
                say '{"reason":"close","type":"closed"}'
            }
            rm -f \(file("heard"))
            say '{"protocolVersion":1,"type":"ready","webKit":"2"}'; hear
            \(script)

            """)
        return ["COUNTERSIGN_WEBVIEW": path]
    }

    /// The lines that the program has read.
    var heard: [String] { TextFile.lines(file("heard")) }
}
