// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The pages that an issuer shows. They contain no script and no link.
enum IssuerPage {
    /// Asks for name and password. `request` is the name of the authorization request.
    static func login(_ request: String, _ settings: IssuerSettings, message: String?) -> String {
        page(
            form(
                action: .signIn, message,
                """
                <p>\(settings.clientIdentifier.markupEscaped) wants to sign you in.</p>
                <input type="hidden" name="request" value="\(request.markupEscaped)">
                \(account(settings))
                """))
    }

    /// Asks for the code of a device, name and password.
    static func code(_ code: String, _ settings: IssuerSettings, message: String?) -> String {
        page(
            form(
                action: .enter, message,
                """
                <p>Enter the code that your device shows.</p>
                <label>Code <input name="user_code" value="\(code.markupEscaped)" autocomplete="off"></label>
                \(account(settings))
                """))
    }

    static func message(_ text: String) -> String { page("<p>\(text.markupEscaped)</p>") }

    private static func account(_ settings: IssuerSettings) -> String {
        var user = ""
        var password = ""
        if case .page(isFilledIn: true) = settings.interaction {
            user = settings.account.name
            password = settings.account.password.utf8Text ?? ""
        }
        return """
            <label>Name <input name="user" value="\(user.markupEscaped)" autocomplete="off"></label>
            <label>Password <input name="password" type="password" value="\(password.markupEscaped)"
            autocomplete="off"></label>
            """
    }

    private static func form(action: IssuerEndpoint, _ message: String?, _ content: String) -> String {
        let warning = message.map { "<p role=\"alert\"><strong>\($0.markupEscaped)</strong></p>\n" } ?? ""
        return """
            \(warning)<form method="post" action="\(action.paths[0])">
            \(content)
            <p><button>Sign in</button> <button name="deny" value="yes">Cancel</button></p>
            </form>
            """
    }

    private static func page(_ content: String) -> String {
        """
        <!doctype html>
        <html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>Sign in</title>
        <style>body { font: 1rem sans-serif; max-width: 22rem; margin: 4rem auto } label { display: block }</style>
        <h1>Sign in</h1>
        \(content)
        </html>

        """
    }
}
