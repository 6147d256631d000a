// SPDX-License-Identifier: Apache-2.0

import java.net.Authenticator;
import java.net.InetSocketAddress;
import java.net.PasswordAuthentication;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/**
 * Fetch.java URL: prints the page, with the JVM's trust store. The JVM has no setting for a proxy password, so it is
 * read from https_proxy.
 */
public class Fetch {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("jdk.http.auth.tunneling.disabledSchemes", "");
        URI proxy = URI.create(System.getenv("https_proxy"));
        String[] user = proxy.getUserInfo().split(":", 2);
        HttpClient client =
                HttpClient.newBuilder()
                        .proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort())))
                        .authenticator(
                                new Authenticator() {
                                    @Override
                                    protected PasswordAuthentication getPasswordAuthentication() {
                                        if (getRequestorType() != RequestorType.PROXY) return null;
                                        return new PasswordAuthentication(user[0], user[1].toCharArray());
                                    }
                                })
                        .build();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0])).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
