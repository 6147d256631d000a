// SPDX-License-Identifier: Apache-2.0
import CountersignCertificates
import CountersignCryptography
import CountersignRevocation

/// A reason is printed in terminals and logs.
private func check(_ judgement: StatusJudgement) {
    guard case .unknown(let reason) = judgement.finding else { return }
    precondition(reason.utf8.count < 500 && reason.utf8.allSatisfy { (0x20...0x7E).contains($0) })
}

/// The same response has the same result.
@Sendable func ocspResponse(_ input: [UInt8]) {
    let found = OCSPResponse.judge(input, about: leaf, by: root, at: now)
    check(found)
    precondition(OCSPResponse.judge(input, about: leaf, by: root, at: now) == found)
}

/// A list, a delta list, or several lists in PEM.
@Sendable func revocationList(_ input: [UInt8]) {
    guard let lists = try? RevocationList.read(input) else { return }
    for list in lists {
        check(list.status(of: leaf, issuedBy: root, at: now))
        _ = list.isCurrent(at: now)
    }
}

/// The sources of a certificate that a server has sent, and the request to its responder.
@Sendable func revocationPoints(_ input: [UInt8]) {
    guard let certificate = try? Certificate(der: input) else { return }
    let points = certificate.revocationPoints
    precondition(points.count <= 4)
    for point in points {
        precondition(point.url.utf8.count <= 1024 && point.url.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        let question = RevocationQuestion(
            certificate: certificate, issuer: root, points: points, isOfLeaf: true, isBelowOwnAnchor: false)
        guard let name = try? DocumentName(point, question) else { continue }
        precondition(name.target.origin.scheme == .http)
    }
}

/// A document that is read from the home is written in the same way.
@Sendable func storedStatus(_ input: [UInt8]) {
    for name in names {
        guard let document = RevocationDocument(stored: input, as: name) else { continue }
        check(document.judge(question, at: now))
        precondition(RevocationDocument(stored: document.stored(as: name), as: name) != nil)
    }
}

private let url = "http://c.test/a.crl"
private let question = RevocationQuestion(
    certificate: leaf, issuer: root, points: [.list(url: url)], isOfLeaf: true, isBelowOwnAnchor: false)
private let names: [DocumentName] = [RevocationPoint.list(url: url), .responder(url: url)].map {
    guard let name = try? DocumentName($0, question) else { fatalError("a name of a document is refused") }
    return name
}

/// The validity of the certificates and of the seeds contains this time.
private let now: Int64 = 1_800_000_000

/// The issuer of the seeds, and the certificate that they are about.
private let root = certificate(rootText)
private let leaf = certificate(leafText)

private func certificate(_ text: String) -> Certificate {
    guard let der = Base64.decode(text), let certificate = try? Certificate(der: der) else {
        fatalError("a certificate of the fuzz targets cannot be read")
    }
    return certificate
}

private let rootText = """
    MIIBXDCCAQKgAwIBAgIUBeYqANBDyLkvf/NYi2ChXc3iNpowCgYIKoZIzj0EAwIwDDEKMAgGA1UEAwwBcjAeFw0yNjExMjMxNTEzMjBaFw00Nj\
    AxMjIxNTEzMjBaMAwxCjAIBgNVBAMMAXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARJVIx3EPif0plMcn9HiaJ0hcDT1/nppnXjrDJbTv2Y\
    pEu2lybGWzP/S6e1dlu+VaSJFhG5hBJHOQof4LxdwlkRo0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwIBBjAdBgNVHQ4EFgQUqJ\
    5uMVnP+NDtAT/raHFjIunP6T4wCgYIKoZIzj0EAwIDSAAwRQIgU7SnK8ksMMDn/zRqMflfkNObaFOMDUMmI5mTLMMwlGgCIQD4JseBdtsMcDJc\
    +b5ztmes9vEGgym5D5rvpG/hPgMfJA==
    """
private let leafText = """
    MIICLjCCAdSgAwIBAgIBATAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAFyMB4XDTI2MTEyMzE1MTMyMFoXDTQ2MDEyMjE1MTMyMFowDzENMAsGA1\
    UEAwwEbGVhZjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOtP22TA/Y3f7DhwPZ0/uL9FGyO0DuQdzGpJfAxPyp4Fjecobl4GsLuMgB+RHxwF\
    BQkSUr4TDO26HtPvJDUjED+jggEiMIIBHjAMBgNVHRMBAf8EAjAAMBEGA1UdEQQKMAiCBmEudGVzdDATBgNVHSUEDDAKBggrBgEFBQcDATBqBg\
    grBgEFBQcBAQReMFwwGgYIKwYBBQUHMAGGDmh0dHA6Ly9vLnRlc3QvMCEGCCsGAQUFBzABhhVodHRwOi8vbzIudGVzdDo4MDgwL3EwGwYIKwYB\
    BQUHMAKGD2h0dHA6Ly9pLnRlc3QvYzA6BgNVHR8EMzAxMC+gLaArhhNodHRwOi8vYy50ZXN0L2EuY3JshhRodHRwOi8vYzIudGVzdC9hLmNybD\
    AdBgNVHQ4EFgQUBExvzUsMEOaxV8BrKsVk+3cpKSYwHwYDVR0jBBgwFoAUqJ5uMVnP+NDtAT/raHFjIunP6T4wCgYIKoZIzj0EAwIDSAAwRQIg\
    Pk16fScmhJQVWeQ4ovwRWrm/qHc6CPxVEgyyw4FVynICIQC8qoqI1ihhA4hYbI4ze0yvK7S33EPYlpacvOjwf1aJGw==
    """
