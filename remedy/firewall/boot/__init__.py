"""What the next boot makes of a host, read from its files; pure.

``nft_text``    a configuration of nftables, as the rules that it makes
``iptables``    what iptables, ip6tables and ufw load
``firewalld``   zones and policies
``walls``       which of them are started, and what they keep out
``ipv6``        the same for packets of IPv6
``armed``       what each of them is asked, and answers
"""
